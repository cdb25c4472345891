// Small pieces that several views have.
import { html, useEffect, useState } from "../vendor/htm-preact.js";
import { T } from "../texts.js";

export const Failed = ({ error }) => (error ? html`<p class="alert" role="alert">${T.errors.failed(error)}</p>` : "");

export const State = ({ state }) => html`<span class=${`state ${state}`}><i aria-hidden="true"></i>${T.states[state] || state}</span>`;

export function link(kind, namespace, name) {
  return `#/object/${[kind, namespace, name].map(encodeURIComponent).join("/")}`;
}

export const Ref = ({ kind, namespace, name }) => html`<a href=${link(kind, namespace || "", name)}>${namespace ? `${namespace}/` : ""}${name}</a>`;

export function useNow(seconds = 1) {
  const [now, set] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => set(Date.now()), seconds * 1000);
    return () => clearInterval(timer);
  }, []);
  return now;
}

export const Table = ({ columns, children, label }) => html`<div class="scroll" tabindex="0" role="region" aria-label=${label}>
  <table><thead><tr>${columns.map((text) => html`<th scope="col">${text}</th>`)}</tr></thead><tbody>${children}</tbody></table></div>`;
