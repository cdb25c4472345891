// A pod's life as a timeline.
import { html, useState } from "../vendor/htm-preact.js";
import { T, ago, span } from "../texts.js";
import { useAnswer } from "../store.js";
import { Failed, Ref, Table, useNow } from "./parts.js";

const path = (pod) => `#/flow/${encodeURIComponent(pod.namespace)}/${encodeURIComponent(pod.name)}`;

function Timeline({ flow }) {
  const timed = flow.steps.filter((each) => each.at);
  const first = timed.length ? Date.parse(timed[0].at) : 0;
  const last = Math.max(...timed.map((each) => Date.parse(each.at)), first + 1);
  const x = (at) => 8 + (984 * (Date.parse(at) - first)) / (last - first);
  return html`<svg class="timeline" viewBox="0 0 1000 34" role="img" aria-label=${T.flow.picture(flow.name)} preserveAspectRatio="none">
      <line x1="8" x2="992" y1="17" y2="17" />
      ${timed.map((each) => html`<circle cx=${x(each.at)} cy="17" r="6" class=${each.step}><title>${T.flow.steps[each.step]} ${each.at}</title></circle>`)}
    </svg>
    <ol class="steps">${flow.steps.map((each) => html`<li class=${each.at ? each.step : "waiting"}>
      <i aria-hidden="true"></i><div><b>${T.flow.steps[each.step]}</b>
      ${each.at ? html` <time datetime=${each.at}>${new Date(each.at).toLocaleTimeString()}</time>` : html` <span class="quiet">${T.flow.notYet}</span>`}
      ${each.seconds > 0 ? html` <span class="quiet">+${span(each.seconds)}</span>` : ""}
      ${each.name && html`<br /><${Ref} kind=${each.kind} namespace=${each.namespace} name=${each.name} />`}
      ${each.note ? html` <span class="quiet">${each.note}</span>` : ""}</div></li>`)}</ol>
    <p class="quiet">${T.flow.total}: ${span((last - first) / 1000)}</p>`;
}

export function FlowView({ path: [namespace, name] }) {
  const { data: all, error } = useAnswer("pods");
  const { data: flow, error: failed } = useAnswer(name ? "flow" : "", { namespace, name });
  const [text, setText] = useState("");
  const now = useNow(5);
  const pods = (all?.pods || []).filter((pod) => `${pod.namespace}/${pod.name}`.includes(text));
  return html`<h1>${T.flow.heading}${name ? html`: <small>${namespace}/${name}</small>` : ""}</h1><${Failed} error=${error || failed} />
    ${flow?.deleted && html`<p class="alert" role="status">${T.flow.gone(new Date(flow.deleted).toLocaleTimeString())}</p>`}
    ${flow && html`<section class="card"><${Timeline} flow=${flow} /></section>`}
    <form class="filters" onSubmit=${(event) => event.preventDefault()}><label class="wide">${T.flow.filter}<input value=${text} onInput=${(event) => setText(event.target.value)} spellcheck="false" /></label></form>
    ${all && !all.count && html`<p class="calm">${T.flow.none}</p>`}
    ${pods.length > 0 && html`<${Table} columns=${T.flow.columns} label=${T.flow.pick}>${pods.slice(0, 200).map((pod) => html`<tr aria-selected=${pod.name === name && pod.namespace === namespace}>
      <td><a href=${path(pod)}>${pod.namespace}/${pod.name}</a></td><td>${pod.phase}</td><td>${pod.node}</td><td>${ago(pod.created, now)}</td></tr>`)}<//>`}`;
}
