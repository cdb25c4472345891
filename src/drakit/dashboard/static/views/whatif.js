// The cluster as it would be: nothing is touched unless changes are allowed and somebody says so.
import { html, useState } from "../vendor/htm-preact.js";
import { T } from "../texts.js";
import { post } from "../server.js";
import { change, store, useAnswer, useStore } from "../store.js";
import { Outcome } from "./outcome.js";
import { Failed } from "./parts.js";

const Pick = ({ name, label, options, value }) => html`<label>${label}<input name=${name} list=${`list-${name}`} defaultValue=${value || ""} spellcheck="false" />
  <datalist id=${`list-${name}`}>${options.slice(0, 500).map((text) => html`<option value=${text} />`)}</datalist></label>`;

function question(form) {
  const read = (name) => (form.get(name) || "").trim();
  const list = (name) => read(name).split(/[\s,]+/).filter(Boolean);
  const templateYaml = form.get("template") || "";
  const like = templateYaml.trim() ? "template" : read("like"), number = Number(read("number")) || 0;
  return { addNodes: like && number ? { [like]: number } : {}, taint: list("taint"), evict: list("evict"), drain: list("drain"), templateYaml, yaml: form.get("yaml") || "" };
}

export function WhatIfView() {
  const { cells, allowChanges, templates } = useStore();
  const { data: pods } = useAnswer("pods");
  const [state, set] = useState({});
  const [draft] = useState(store.draft || {});
  if (store.draft) change({ draft: null });
  const nodes = [...new Set([...cells.values()].map((cell) => cell.node).filter(Boolean))].sort();
  const ask = async (event) => {
    event.preventDefault();
    const asked = question(new FormData(event.target));
    set({ busy: true });
    try { set({ asked, answer: await post("whatif", asked) }); } catch (error) { set({ error: error.message }); }
  };
  const make = async () => {
    if (!confirm(T.whatif.applySure)) return;
    try { const { done } = await post("changes", state.asked); set({ ...state, done }); } catch (error) { set({ ...state, error: error.message }); }
  };
  return html`<h1>${T.whatif.heading}</h1><p class="quiet">${T.whatif.intro}</p>
    <form class="card question" onSubmit=${ask}>
      <fieldset><legend>${T.whatif.addNodes}</legend><${Pick} name="like" label=${T.whatif.like} options=${[...nodes, ...templates]} />
        <label>${T.whatif.number}<input name="number" type="number" min="0" max="1000" defaultValue="1" /></label></fieldset>
      <${Pick} name="taint" label=${T.whatif.taint} value=${draft.taint} options=${[...cells.keys()].map((key) => key.split(" ").join("/"))} />
      <${Pick} name="evict" label=${T.whatif.evict} options=${(pods?.pods || []).filter((pod) => pod.node).map((pod) => `${pod.namespace}/${pod.name}`)} />
      <${Pick} name="drain" label=${T.whatif.drain} options=${nodes} />
      <label class="wide">${T.whatif.template}<textarea name="template" class="code" rows="2" spellcheck="false"></textarea></label>
      <label class="wide">${T.whatif.yaml}<textarea name="yaml" class="code" rows="4" spellcheck="false"></textarea></label>
      <button class="primary" disabled=${state.busy}>${state.busy ? T.whatif.asking : T.whatif.ask}</button>
    </form>
    <${Failed} error=${state.error} />
    ${state.answer && html`<section class="card"><${Outcome} answer=${state.answer} />
      ${allowChanges && html`<button onClick=${make}>${T.whatif.apply}</button>`}
      ${state.done && html`<p role="status">${T.whatif.done} ${state.done.join(", ")}</p>`}</section>`}`;
}
