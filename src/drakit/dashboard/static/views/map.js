// Nodes × devices, coloured by state; filters, and a selector that lights up what it matches.
import { html, useEffect, useMemo, useRef, useState } from "../vendor/htm-preact.js";
import { T } from "../texts.js";
import { post } from "../server.js";
import { useStore } from "../store.js";
import { arrange, cellAt, colours, draw, neighbour } from "./canvas.js";
import { Device } from "./device.js";
import { Ref, State, Table } from "./parts.js";

const GROUPS = {
  node: () => "", pool: (cell) => `${cell.driver} · ${cell.pool}`, model: (cell) => cell.model || "", zone: (cell) => cell.zone || T.map.none,
};
const LISTED = 200;
let painted = false;

function useSelector(expression, version) {
  const [found, set] = useState(null);
  useEffect(() => {
    if (!expression.trim()) { set(null); return undefined; }
    const control = new AbortController();
    const timer = setTimeout(async () => {
      try {
        const answer = await post("selector", expression, control.signal);
        set({ ...answer, keys: new Set(answer.keys) });
      } catch (error) {
        if (error.name !== "AbortError") set({ faults: [{ message: error.message }], keys: new Set() });
      }
    }, 250);
    return () => { clearTimeout(timer); control.abort(); };
  }, [expression, version]);
  return found;
}

const Choice = ({ label, value, options, onChange, any }) => html`<label>${label}
  <select value=${value} onChange=${(event) => onChange(event.target.value)}>
    ${any && html`<option value="">${T.map.any}</option>`}
    ${options.map(([key, text]) => html`<option value=${key}>${text}</option>`)}
  </select></label>`;

const same = (names) => names.map((name) => [name, name]);

function Legend({ cells }) {
  const counts = {};
  for (const cell of cells) counts[cell.state] = (counts[cell.state] || 0) + 1;
  return html`<ul class="legend">${Object.keys(T.states).map((state) => html`<li class=${counts[state] ? "" : "none"}>
    <${State} state=${state} /> <b>${counts[state] || 0}</b></li>`)}</ul>`;
}

function Figures({ summary }) {
  const t = summary.totals, part = (n) => (t.cards ? `${(100 * n) / t.cards}%` : "0%");
  return html`<section class="figures">
    <p class="big"><b>${t.used}</b><span> / ${t.cards}</span> <small>${T.states.used}</small></p>
    <div class="bar" role="img" aria-label=${T.map.summary(t)}>
      <i class="used" style=${{ width: part(t.used) }}></i><i class="tainted" style=${{ width: part(t.tainted) }}></i></div>
    <p class="quiet">${[T.map.free(t.free), T.map.tainted(t.tainted), T.map.nodes(summary.nodes), T.map.pods(summary.pods), T.map.pending(summary.pending)].join(" · ")}</p>
  </section>`;
}

function Picture({ cells, group, lit, selected, onSelect }) {
  const outer = useRef(), canvas = useRef();
  const [width, setWidth] = useState(0);
  const [focused, setFocused] = useState("");
  const [hover, setHover] = useState(null);
  const layout = useMemo(() => (width ? arrange(cells, GROUPS[group], width, { several: T.map.several }) : null), [cells, group, width]);
  const paint = () => {
    if (!layout) return;
    draw(canvas.current, layout, outer.current.scrollTop, { lit, focused: focused || selected, palette: colours(outer.current) });
    if (!painted && layout.placed.length) { painted = true; performance.measure("drakit-first-paint", { start: 0 }); }
  };
  useEffect(() => {
    const watch = new ResizeObserver(() => setWidth(outer.current.clientWidth));
    watch.observe(outer.current);
    return () => watch.disconnect();
  }, []);
  useEffect(paint);
  const at = (event) => {
    const place = canvas.current.getBoundingClientRect();
    return layout && cellAt(layout, event.clientX - place.left, event.clientY - place.top + outer.current.scrollTop);
  };
  const move = (event) => {
    const found = at(event), place = outer.current.getBoundingClientRect();
    setHover(found ? { cell: found.cell, x: Math.min(event.clientX - place.left + 14, width - 230), y: event.clientY - place.top + 16 } : null);
  };
  const step = (event) => {
    const way = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
    if (way && layout?.placed.length) {
      event.preventDefault();
      const next = neighbour(layout, focused, ...way);
      setFocused(next.cell.key);
      const box = outer.current;
      if (next.y < box.scrollTop) box.scrollTop = next.y - 40;
      if (next.y + 40 > box.scrollTop + box.clientHeight) box.scrollTop = next.y - box.clientHeight + 60;
    } else if (event.key === "Enter" && focused) onSelect(focused);
    else if (event.key === "Escape") onSelect("");
  };
  const spoken = focused && cells.find((cell) => cell.key === focused);
  return html`<div class="picture" ref=${outer} tabindex="0" role="application" aria-label=${T.map.label}
      onScroll=${paint} onKeyDown=${step} onBlur=${() => setFocused("")}
      onMouseMove=${move} onMouseLeave=${() => setHover(null)} onClick=${(event) => { const found = at(event); onSelect(found ? found.cell.key : ""); }}>
    <canvas ref=${canvas} aria-hidden="true"></canvas>
    <div class="spacer" style=${{ height: `${layout ? layout.height : 0}px` }}></div>
    ${hover && html`<div class="hover" style=${{ left: `${hover.x}px`, top: `${hover.y + (outer.current?.scrollTop || 0)}px` }}>
      <b>${hover.cell.device}</b><${State} state=${hover.cell.state} />
      ${hover.cell.share ? html`<span>${T.map.taken(Math.round(hover.cell.share * 100))}</span>` : ""}
      ${hover.cell.marked ? html`<span>${T.map.marked}</span>` : ""}
      <span class="quiet">${hover.cell.node || T.map.several} · ${hover.cell.model}</span>
      ${(hover.cell.claims || []).map((claim) => html`<span>${claim}</span>`)}</div>`}
    <p class="hidden" aria-live="polite">${spoken ? `${spoken.device}, ${spoken.node}, ${T.states[spoken.state]}, ${(spoken.claims || []).join(", ")}` : ""}</p>
  </div>`;
}

function Listed({ cells, onSelect }) {
  return html`<p class="quiet">${T.map.listed(Math.min(cells.length, LISTED), cells.length)}</p>
    <${Table} columns=${T.map.columns} label=${T.map.asList}>${cells.slice(0, LISTED).map((cell) => html`<tr>
      <td><button class="link" onClick=${() => onSelect(cell.key)}>${cell.device}</button></td><td>${cell.node || T.map.several}</td>
      <td>${cell.pool}</td><td><${State} state=${cell.state} />${cell.marked ? html` <span class="quiet">${T.map.marked}</span>` : ""}</td>
      <td>${(cell.claims || []).map((text) => { const [namespace, name] = text.split("/"); return html`<${Ref} kind="ResourceClaim" namespace=${namespace} name=${name} /> `; })}</td></tr>`)}<//>`;
}

export function MapView() {
  const { cells, summary, version } = useStore();
  const [group, setGroup] = useState("node");
  const [filter, setFilter] = useState({ class: "", namespace: "", claim: "" });
  const [expression, setExpression] = useState("");
  const [selected, setSelected] = useState("");
  const [list, setList] = useState(false);
  const found = useSelector(expression, version);
  const all = useMemo(() => [...cells.values()], [version, summary]);
  const shown = useMemo(() => all.filter((cell) =>
    (!filter.class || (cell.classes || []).includes(filter.class)) &&
    (!filter.namespace || (cell.claims || []).some((claim) => claim.startsWith(`${filter.namespace}/`))) &&
    (!filter.claim || (cell.claims || []).some((claim) => claim.includes(filter.claim)))), [all, filter]);
  const set = (name) => (value) => setFilter({ ...filter, [name]: value });
  const fault = found?.faults?.[0];
  if (!summary) return html`<p class="quiet" role="status">${T.connecting}…</p>`;
  return html`<h1 class="hidden">${T.views.map}</h1>
    <${Figures} summary=${summary} />
    <form class="filters" onSubmit=${(event) => event.preventDefault()}>
      <${Choice} label=${T.map.group} value=${group} onChange=${setGroup} options=${Object.entries(T.map.groups)} />
      <${Choice} label=${T.map.class} value=${filter.class} onChange=${set("class")} any options=${same(summary.classes)} />
      <${Choice} label=${T.map.namespace} value=${filter.namespace} onChange=${set("namespace")} any options=${same(summary.namespaces)} />
      <label>${T.map.claim}<input value=${filter.claim} onInput=${(event) => set("claim")(event.target.value)} spellcheck="false" /></label>
      <label class="wide">${T.map.selector}<input class="code" value=${expression} placeholder=${T.map.selectorHint} spellcheck="false"
        aria-invalid=${Boolean(fault)} aria-describedby="selector-says" onInput=${(event) => setExpression(event.target.value)} /></label>
      <button type="button" aria-pressed=${list} onClick=${() => setList(!list)}>${list ? T.map.asMap : T.map.asList}</button>
    </form>
    <div id="selector-says" role="status">
      ${found && !fault && html`<p class="quiet">${T.map.matching(found.keys.size, all.length)}${found.errors ? ` · ${T.map.evaluationErrors(found.errors, found.error)}` : ""}</p>`}
      ${fault && html`<pre class="fault">${fault.snippet ? `${fault.snippet}\n` : ""}${fault.message}</pre>`}
    </div>
    <${Legend} cells=${shown} />
    ${!all.length && html`<p class="quiet">${T.map.empty}</p>`}
    ${all.length > 0 && !shown.length && html`<p class="quiet">${T.map.nothing}</p>`}
    <div class=${`split ${selected ? "open" : ""}`}>
      ${list ? html`<div class="listed"><${Listed} cells=${found && !fault ? shown.filter((cell) => found.keys.has(cell.key)) : shown} onSelect=${setSelected} /></div>`
        : html`<${Picture} cells=${shown} group=${group} lit=${found && !fault ? found.keys : null} selected=${selected} onSelect=${setSelected} />`}
      ${selected && html`<${Device} id=${selected} onClose=${() => setSelected("")} />`}
    </div>`;
}
