// One object: how it stands, its conditions, events and YAML.
import { html } from "../vendor/htm-preact.js";
import { T, ago } from "../texts.js";
import { useAnswer } from "../store.js";
import { Failed, Table, useNow } from "./parts.js";

const EXPLAINED = ["Pod", "ResourceClaim", "PodGroup"];

export function ObjectView({ path: [kind, namespace, name] }) {
  const { data, error } = useAnswer("object", { kind, namespace, name });
  const { data: told } = useAnswer(EXPLAINED.includes(kind) ? "explain" : "", { kind, namespace, name });
  const now = useNow(5);
  const shown = T.object;
  return html`<h1>${kind} <small>${namespace ? `${namespace}/` : ""}${name}</small></h1><${Failed} error=${error} />
    ${data?.deleted && html`<p class="alert" role="status">${shown.gone(new Date(data.deleted).toLocaleTimeString())}</p>`}
    ${told && html`<p class="verdict">${told.verdict}</p>`}
    ${kind === "Pod" && html`<p><a href=${`#/flow/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`}>${T.flow.heading}</a></p>`}
    ${data && html`
      <h2>${shown.conditions}</h2>${!data.conditions.length ? html`<p class="quiet">${shown.noConditions}</p>` : html`<${Table} columns=${shown.columns.conditions} label=${shown.conditions}>
        ${data.conditions.map((each) => html`<tr><td>${each.type}</td><td>${each.status}</td><td>${ago(each.lastTransitionTime, now)}</td><td>${each.reason} ${each.message}</td></tr>`)}<//>`}
      <h2>${shown.events}</h2>${!data.events.length ? html`<p class="quiet">${shown.noEvents}</p>` : html`<${Table} columns=${shown.columns.events} label=${shown.events}>
        ${data.events.map((each) => html`<tr><td>${ago(each.at, now)}</td><td>${each.type}</td><td>${each.reason}</td><td>${each.message}${each.count > 1 ? ` (×${each.count})` : ""}</td></tr>`)}<//>`}
      <h2>${shown.yaml}</h2>${data.cut ? html`<p class="quiet">${shown.cut(data.cut)}</p>` : ""}
      <pre class="yaml" tabindex="0" role="region" aria-label=${shown.yaml}>${data.yaml}</pre>`}`;
}
