// The page: who looks, which view, and whether what is shown is current.
import { html, render, useEffect, useState } from "./vendor/htm-preact.js";
import { T } from "./texts.js";
import { ask, follow, login } from "./server.js";
import { change, onMap, useStore } from "./store.js";
import { MapView } from "./views/map.js";
import { PendingView } from "./views/pending.js";
import { FlowView } from "./views/flow.js";
import { ObjectView } from "./views/object.js";
import { TimeView } from "./views/time.js";
import { WhatIfView } from "./views/whatif.js";

const VIEWS = { map: MapView, pending: PendingView, flow: FlowView, time: TimeView, whatif: WhatIfView, object: ObjectView };
const THEME = "drakit.theme";

function useRoute() {
  const read = () => location.hash.replace(/^#\/?/, "").split("/").map(decodeURIComponent);
  const [route, set] = useState(read);
  useEffect(() => {
    const hear = () => set(read());
    addEventListener("hashchange", hear);
    return () => removeEventListener("hashchange", hear);
  }, []);
  return route[0] in VIEWS ? route : ["map"];
}

function Login({ message, onDone }) {
  const submit = (event) => {
    event.preventDefault();
    const form = new FormData(event.target);
    login.set({ token: form.get("token").trim(), as: form.get("as").trim(), groups: form.get("groups").trim(), only: form.get("only").trim() });
    onDone();
  };
  return html`<main class="login"><form onSubmit=${submit} autocomplete="off">
    <h1><${Mark} /> ${T.title}</h1>
    ${message && html`<p class="alert" role="alert">${T.login.refused} ${message}</p>`}
    <label>${T.login.token}<input name="token" type="password" required autofocus spellcheck="false" /></label>
    <label>${T.login.as}<input name="as" spellcheck="false" /></label>
    <label>${T.login.groups}<input name="groups" spellcheck="false" /></label>
    <label>${T.login.only}<input name="only" spellcheck="false" /></label>
    <button class="primary">${T.login.submit}</button>
    <p class="quiet">${T.login.hint}</p>
  </form></main>`;
}

const Mark = () => html`<svg class="mark" viewBox="0 0 18 18" aria-hidden="true">
  <rect width="7.5" height="7.5" rx="2" /><rect x="10.5" width="7.5" height="7.5" rx="2" class="soft" />
  <rect y="10.5" width="7.5" height="7.5" rx="2" class="soft" /><rect x="10.5" y="10.5" width="7.5" height="7.5" rx="2" />
</svg>`;

function Theme() {
  const [theme, set] = useState(localStorage.getItem(THEME) || "auto");
  useEffect(() => {
    document.documentElement.dataset.theme = theme;
    localStorage.setItem(THEME, theme);
    change({});
  }, [theme]);
  return html`<label class="bare"><span class="hidden">${T.theme.label}</span>
    <select value=${theme} onChange=${(event) => set(event.target.value)}>
      ${["auto", "light", "dark"].map((name) => html`<option value=${name}>${T.theme[name]}</option>`)}
    </select></label>`;
}

function Head({ view, onLogout }) {
  const { status, staleFor, state, summary } = useStore();
  const stale = status === "stale" || Boolean(state.problem);
  const shown = stale ? (staleFor > 1 ? T.staleFor(staleFor) : T.stale) : T[status];
  return html`<header>
    <a class="skip" href="#content" onClick=${(event) => { event.preventDefault(); document.getElementById("content").focus(); }}>${T.skip}</a>
    <a class="brand" href="#/map"><${Mark} />${T.title}</a>
    <nav aria-label=${T.nav}>${Object.entries(T.views).map(([name, title]) => html`
      <a href=${`#/${name}`} aria-current=${view === name ? "page" : undefined}>${title}
        ${name === "pending" && summary && summary.pending > 0 ? html`<span class="count">${summary.pending}</span>` : ""}</a>`)}
    </nav>
    <span class="right">
      <span class=${`pill ${stale ? "stale" : status}`} role="status">${shown}</span>
      <span class="user" title=${state.user}>${state.user}</span>
      <${Theme} />
      <button class="bare" onClick=${onLogout}>${T.logout}</button>
    </span>
  </header>`;
}

function Notes() {
  const { status, state } = useStore();
  return html`
    ${(status === "stale" || state.problem) && html`<p class="alert" role="alert">${T.staleNote} ${state.problem}</p>`}
    ${state.forbidden?.length > 0 && html`<details class="alert" open><summary>${T.mayNot}</summary>
      <ul>${state.forbidden.map((text) => html`<li>${text}</li>`)}</ul></details>`}`;
}

function App() {
  const [name, ...rest] = useRoute();
  const [entered, setEntered] = useState(Boolean(login.get()));
  const [message, setMessage] = useState("");
  const leave = (why) => { login.clear(); setMessage(why); setEntered(false); change({ cells: new Map(), summary: null }); };
  useEffect(() => {
    if (!entered) return undefined;
    change({ status: "connecting" });
    ask("state").then((found) => change({ allowChanges: found.allowChanges, templates: found.templates || [] })).catch(() => {});
    return follow({
      onEvent: (event, data) => {
        const begun = performance.now();
        if (event === "map") { onMap(data); requestAnimationFrame(() => performance.measure("drakit-update", { start: begun })); }
        else if (event === "state") change({ state: { forbidden: [], problem: "", ...data } });
      },
      onStatus: (status, staleFor) => change({ status, staleFor }),
      onRefused: (error) => leave(error.message),
    });
  }, [entered]);
  useEffect(() => { document.title = `${T.views[name] || rest[2] || ""} · ${T.title}`; }, [name, rest.join("/")]);
  if (!entered) return html`<${Login} message=${message} onDone=${() => setEntered(true)} />`;
  return html`<${Head} view=${name} onLogout=${() => leave("")} />
    <main id="content" tabindex="-1"><${Notes} /><${VIEWS[name]} key=${name} path=${rest} /></main>`;
}

render(html`<${App} />`, document.getElementById("app"));
