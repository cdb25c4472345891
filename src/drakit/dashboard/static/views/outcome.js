// What would be: before and after, side by side.
import { html } from "../vendor/htm-preact.js";
import { T } from "../texts.js";

const percent = (n) => `${Math.round(n * 100)} %`;
const ROWS = [
  ["nodes", (u) => u.nodes], ["used", (u) => `${u.used} / ${u.devices}`], ["free", (u) => u.free],
  ["largest", (u) => u.largest], ["fragmentation", (u) => percent(u.fragmentation)],
];

const Side = ({ title, use, other }) => html`<div class="side"><h3>${title}</h3>
  <div class="bar" role="img" aria-label=${`${T.whatif.used}: ${use.used} / ${use.devices}`}><i class="used" style=${{ width: `${use.devices ? (100 * use.used) / use.devices : 0}%` }}></i></div>
  <dl>${ROWS.map(([name, read]) => html`<dt>${T.whatif[name]}</dt><dd class=${other && read(use) !== read(other) ? "changed" : ""}>${read(use)}</dd>`)}</dl></div>`;

export function Outcome({ answer }) {
  return html`<div class="outcome" role="status">
    <p class="verdict">${answer.placed.length || answer.pending.length ? `${T.whatif.placed(answer.placed.length)}, ${T.whatif.pending(answer.pending.length)}` : T.whatif.nothingPending}</p>
    <div class="sides"><${Side} title=${T.whatif.before} use=${answer.before} /><${Side} title=${T.whatif.after} use=${answer.after} other=${answer.before} /></div>
    ${answer.added.length > 0 && html`<p>${T.whatif.added}: ${answer.added.join(", ")}</p>`}
    <ul class="placements">
      ${answer.placed.slice(0, 100).map((each) => html`<li class="good"><b>${each.namespace}/${each.name}</b> ${T.whatif.on} ${each.node}${each.moved ? ` (${T.whatif.moved} ${each.moved})` : ""} <span class="quiet">${(each.devices || []).join(", ")}</span></li>`)}
      ${answer.pending.slice(0, 100).map((each) => html`<li class="bad"><b>${each.namespace}/${each.name}</b> ${each.reason}</li>`)}
    </ul></div>`;
}
