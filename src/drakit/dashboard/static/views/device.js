// Everything about one device.
import { html } from "../vendor/htm-preact.js";
import { T, ago } from "../texts.js";
import { change, store, useAnswer } from "../store.js";
import { Failed, Ref, State } from "./parts.js";

const Pairs = ({ title, entries }) => (entries.length ? html`<h3>${title}</h3><dl>${entries.map(([name, value]) => html`<dt>${name}</dt><dd>${value}</dd>`)}</dl>` : "");
const left = (found) => Object.entries(found).map(([name, each]) => [name, T.device.of(each.left, each.total)]);

export function Device({ id, onClose }) {
  const { data, error } = useAnswer("device", { key: id });
  const cell = store.cells.get(id);
  const taint = () => { change({ draft: { taint: id.split(" ").join("/") } }); location.hash = "#/whatif"; };
  return html`<aside class="details" aria-label=${id}>
    <button class="close" onClick=${onClose} aria-label=${T.device.close}>×</button>
    <h2>${id.split(" ")[2]}</h2>
    <p class="quiet">${id.split(" ").slice(0, 2).join(" · ")}</p>
    ${cell && html`<p><${State} state=${cell.state} /> ${cell.share ? T.map.taken(Math.round(cell.share * 100)) : ""}</p>`}
    <${Failed} error=${error} />
    ${data && html`
      <p>${data.node ? html`<${Ref} kind="Node" name=${data.node} />` : T.device.reached(data.nodes)}</p>
      <h3>${T.device.holders}</h3>
      ${!data.holders.length && html`<p class="quiet">${T.device.nobody}</p>`}
      ${data.holders.map((each) => html`<p><${Ref} kind="ResourceClaim" namespace=${each.namespace} name=${each.claim} />
        ${each.admin ? ` (${T.device.admin})` : ""} ${each.since ? html`<span class="quiet">${T.device.since} <time datetime=${each.since}>${ago(each.since)}</time></span>` : ""}
        ${Object.entries(each.consumed || {}).map(([name, amount]) => html`<br />${name} ${amount}`)}
        ${(each.pods || []).map((pod) => html`<br /><${Ref} kind="Pod" namespace=${each.namespace} name=${pod} />`)}</p>`)}
      <${Pairs} title=${T.device.taints} entries=${data.taints.map((text) => [text, ""])} />
      <${Pairs} title=${T.device.capacity} entries=${left(data.capacity)} />
      <${Pairs} title=${T.device.counters} entries=${left(data.counters)} />
      <${Pairs} title=${T.device.attributes} entries=${Object.entries(data.attributes)} />
      <${Pairs} title=${T.device.classes} entries=${data.classes.map((name) => [html`<${Ref} kind="DeviceClass" name=${name} />`, ""])} />
      <button onClick=${taint}>${T.device.tryTaint}</button>`}
  </aside>`;
}
