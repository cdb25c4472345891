// Figures over time.
import { html, useEffect, useRef, useState } from "../vendor/htm-preact.js";
import uPlot from "../vendor/uplot.js";
import { T } from "../texts.js";
import { download } from "../server.js";
import { useAnswer, useStore } from "../store.js";
import { Failed } from "./parts.js";

const COLOURS = ["quiet", "accent", "shared", "tainted", "used", "unhealthy", "preparing"];

function Chart({ title, times, lines, low, total }) {
  // Grey is for what all the others are a part of.
  const shades = total ? COLOURS : [...COLOURS.slice(1), COLOURS[0]];
  const place = useRef(), plot = useRef(null);
  const key = lines.map((line) => line.label).join("|");
  const theme = document.documentElement.dataset.theme;
  useEffect(() => {
    const style = getComputedStyle(place.current), colour = (name) => style.getPropertyValue(`--${name}`).trim();
    const axis = { stroke: colour("quiet"), grid: { stroke: colour("line"), width: 1 }, ticks: { stroke: colour("line"), width: 1 }, font: "11px system-ui" };
    const made = new uPlot({
      width: place.current.clientWidth || 300, height: 180, legend: { show: false }, cursor: { y: false },
      scales: { y: { range: (_, from, to) => [0, Math.max(to, low || 1) * 1.08] } },
      series: [{}, ...lines.map((line, at) => ({
        label: line.label, stroke: colour(shades[at % shades.length]), width: 2, spanGaps: true, points: { show: times.length < 3 },
        fill: at === lines.length - 1 && lines.length <= 2 ? `${colour(shades[at % shades.length])}22` : undefined,
      }))],
      axes: [axis, { ...axis, size: 44 }],
    }, [times, ...lines.map((line) => line.values)], place.current);
    plot.current = made;
    const watch = new ResizeObserver(() => made.setSize({ width: place.current.clientWidth, height: 180 }));
    watch.observe(place.current);
    return () => { watch.disconnect(); made.destroy(); plot.current = null; };
  }, [key, theme]);
  useEffect(() => { plot.current?.setData([times, ...lines.map((line) => line.values)]); });
  return html`<figure class="card chart"><figcaption><b>${title}</b>
    <ul>${lines.map((line, at) => html`<li><i class=${`dot c-${shades[at % shades.length]}`} aria-hidden="true"></i>${T.time.latest(line.label, line.values.at(-1) ?? "–")}</li>`)}</ul></figcaption>
    <div ref=${place} aria-hidden="true"></div></figure>`;
}

export function TimeView() {
  useStore();
  const [tick, setTick] = useState(0);
  const [range, setRange] = useState("3600");
  const [failed, setFailed] = useState("");
  useEffect(() => { const timer = setInterval(() => setTick((n) => n + 1), 5000); return () => clearInterval(timer); }, []);
  const { data, error } = useAnswer("history", undefined, { tick });
  const all = data?.samples || [];
  const from = all.length ? all.at(-1).at - Number(range) : 0;
  const found = all.filter((each) => each.at >= from);
  const times = found.map((each) => each.at), line = (label, read) => ({ label, values: found.map(read) });
  const names = (field) => [...new Set(found.flatMap((each) => Object.keys(each[field])))].sort().slice(0, COLOURS.length);
  const save = () => download("history.csv").catch((wrong) => setFailed(wrong.message));
  return html`<h1>${T.time.heading}</h1><${Failed} error=${error || failed} />
    <form class="filters" onSubmit=${(event) => event.preventDefault()}><label>${T.time.range}
      <select value=${range} onChange=${(event) => setRange(event.target.value)}>${Object.entries(T.time.ranges).map(([key, text]) => html`<option value=${key}>${text}</option>`)}</select></label>
      <button type="button" onClick=${save}>${T.time.csv}</button></form>
    ${!found.length && !error && html`<p class="quiet" role="status">${T.time.none}</p>`}
    ${found.length > 0 && html`<div class="charts">
      <${Chart} total title=${T.time.devices} times=${times} lines=${[line(T.time.total, (s) => s.total), line(T.time.allocated, (s) => s.allocated)]} />
      <${Chart} title=${T.time.pending} times=${times} lines=${[line(T.time.waiting, (s) => s.pending)]} low=${4} />
      <${Chart} title=${T.time.latency} times=${times} lines=${[line(T.time.p50, (s) => s.p50), line(T.time.p99, (s) => s.p99)]} />
      <${Chart} title=${T.time.fragmentation} times=${times} lines=${[line(T.time.fragmented, (s) => Math.round(s.fragmentation * 100))]} low=${100} />
      <${Chart} title=${T.time.perClass} times=${times} low=${100} lines=${names("sizes").map((name) => line(name, (s) => (s.sizes[name] ? Math.round((100 * (s.classes[name] || 0)) / s.sizes[name]) : null)))} />
      <${Chart} title=${T.time.perNamespace} times=${times} lines=${names("namespaces").map((name) => line(name, (s) => s.namespaces[name] || 0))} />
    </div>`}`;
}
