// Pods that wait: the sentence, the funnel per request, what would help, and a try of it.
import { html, useState } from "../vendor/htm-preact.js";
import { T, ago } from "../texts.js";
import { ask, post } from "../server.js";
import { useAnswer } from "../store.js";
import { Outcome } from "./outcome.js";
import { Failed, Ref, useNow } from "./parts.js";

const FEW = 4;

export function Funnel({ request }) {
  const most = Math.max(1, ...request.stages.map((each) => each.left));
  return html`<figure class="funnel"><figcaption><b>${request.request}</b> <span class="quiet">${request.deviceClass} · ${T.pending.wanted(request.wanted)} · ${T.pending.best(request.best, request.bestNode)}</span></figcaption>
    <ol aria-label=${T.pending.funnel}>${request.stages.map((each) => html`<li>
      <span class="name">${each.stage}</span><span class="track"><i class=${each.left ? "" : "none"} style=${{ width: `${Math.max((100 * each.left) / most, each.left ? 2 : 0)}%` }}></i></span><b>${each.left}</b></li>`)}</ol>
    ${request.refused.length > 0 && html`<ul class="quiet">${request.refused.slice(0, FEW).map((each) => html`<li>${each.count} × ${each.reason}</li>`)}${request.refused.length > FEW ? html`<li>${T.pending.others(request.refused.length - FEW)}</li>` : ""}</ul>`}
  </figure>`;
}

function question(suggestion) {
  const evict = suggestion.remove.filter((each) => each.kind === "Pod").map((each) => `${each.namespace}/${each.name}`);
  // Evicting a pod releases its claims by itself: they are not put a second time.
  return evict.length && suggestion.kind === "pods" ? { evict } : { evict, put: suggestion.put };
}

function Suggestions({ pod }) {
  const [found, set] = useState(null);
  const [tried, setTried] = useState({});
  const look = async () => {
    set({ busy: true });
    try { set(await ask("explain", { kind: "Pod", namespace: pod.namespace, name: pod.name })); } catch (error) { set({ error: error.message }); }
  };
  const attempt = async (at, suggestion) => {
    setTried({ ...tried, [at]: { busy: true } });
    try { const answer = await post("whatif", question(suggestion)); setTried((all) => ({ ...all, [at]: { answer } })); }
    catch (error) { setTried((all) => ({ ...all, [at]: { error: error.message } })); }
  };
  if (!found) return html`<button onClick=${look}>${T.pending.show}</button>`;
  if (found.busy) return html`<p class="quiet" role="status">${T.pending.looking}</p>`;
  if (found.error) return html`<${Failed} error=${found.error} />`;
  return html`<h3>${T.pending.would}</h3>
    ${!found.suggestions.length && html`<p class="quiet">${T.pending.noHelp} ${found.hopeless}</p>`}
    <ul class="suggestions">${found.suggestions.map((each, at) => html`<li><span>${each.text}</span>
      <button onClick=${() => attempt(at, each)} disabled=${tried[at]?.busy}>${T.pending.try}</button>
      ${tried[at]?.error && html`<${Failed} error=${tried[at].error} />`}
      ${tried[at]?.answer && html`<div class="tried"><p class="quiet">${T.pending.tried}</p><${Outcome} answer=${tried[at].answer} /></div>`}</li>`)}</ul>`;
}

export function PendingView() {
  const { data, error } = useAnswer("pending");
  const now = useNow(5);
  return html`<h1>${T.pending.heading}</h1><${Failed} error=${error} />
    ${data && !data.count && html`<p class="calm">${T.pending.none}</p>`}
    ${data && data.count > data.pods.length && html`<p class="quiet">${T.pending.more(data.pods.length, data.count)}</p>`}
    ${data && data.pods.map((pod) => html`<article class="card" key=${`${pod.namespace}/${pod.name}`}>
      <h2><${Ref} kind="Pod" namespace=${pod.namespace} name=${pod.name} /> <small class="quiet">${T.pending.since} ${ago(pod.created, now)}</small></h2>
      <p class="verdict">${pod.verdict}</p>
      <div class="funnels">${pod.requests.map((request) => html`<${Funnel} request=${request} />`)}</div>
      ${pod.missing.length > 0 && html`<p class="quiet">${T.pending.holders} ${[...new Map(pod.missing.map((each) => [`${each.namespace}/${each.claim}`, each])).values()].slice(0, 8).map((each, at) => html`${at ? ", " : ""}<${Ref} kind="ResourceClaim" namespace=${each.namespace} name=${each.claim} />`)}</p>`}
      <${Suggestions} pod=${pod} />
      <p><a href=${`#/flow/${encodeURIComponent(pod.namespace)}/${encodeURIComponent(pod.name)}`}>${T.pending.flow}</a></p>
    </article>`)}`;
}
