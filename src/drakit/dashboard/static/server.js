// The server: requests with the viewer's credentials, and the stream of events with its reconnections.
import { T } from "./texts.js";

const BASE = "/dashboard/api/";
const KEY = "drakit.login";
const STALE_MS = 12000;
const LONGEST_MS = 30000;

export const login = {
  get: () => JSON.parse(sessionStorage.getItem(KEY) || "null"),
  set: (value) => sessionStorage.setItem(KEY, JSON.stringify(value)),
  clear: () => sessionStorage.removeItem(KEY),
};

export class Refused extends Error {
  constructor(code, message) {
    super(message);
    this.code = code;
  }
}

function headers(more) {
  const found = login.get() || {};
  const made = { ...more };
  if (found.token) made.Authorization = `Bearer ${found.token}`;
  if (found.as) made["Impersonate-User"] = found.as;
  if (found.as && found.groups) made["Drakit-Act-As-Groups"] = found.groups.split(",").map((each) => encodeURIComponent(each.trim())).join(",");
  return made;
}

function address(name, parameters) {
  const only = (login.get() || {}).only;
  const query = new URLSearchParams({ ...parameters, ...(only ? { only } : {}) }).toString();
  return BASE + name + (query ? `?${query}` : "");
}

async function request(name, { parameters, body, more, signal } = {}) {
  let answer;
  try {
    answer = await fetch(address(name, parameters), {
      method: body === undefined ? "GET" : "POST", body, signal, headers: headers(more),
      credentials: "same-origin", cache: "no-store",
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refused(0, T.errors.offline);
  }
  if (answer.ok) return answer;
  let message = answer.statusText;
  try { message = (await answer.json()).message || message; } catch { /* not JSON: the status line says it */ }
  throw new Refused(answer.status, message);
}

export async function ask(name, parameters, signal) {
  return (await request(name, { parameters, signal })).json();
}

export async function post(name, body, signal) {
  return (await request(name, { body: typeof body === "string" ? body : JSON.stringify(body), signal })).json();
}

export async function download(name) {
  const blob = await (await request(name)).blob();
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = `drakit-${name}`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

/** Follow the events until stopped: resume after the last id, wait longer after each failure, say when it is stale. */
export function follow({ onEvent, onStatus, onRefused }) {
  const control = new AbortController();
  let last = "", heard = Date.now(), tries = 0;
  const watch = setInterval(() => {
    if (Date.now() - heard > STALE_MS) onStatus("stale", Math.round((Date.now() - heard) / 1000));
  }, 1000);

  async function once() {
    const silent = new AbortController();
    const guard = setInterval(() => Date.now() - heard > 3 * STALE_MS && silent.abort(), 1000);
    control.signal.addEventListener("abort", () => silent.abort());
    try {
      const answer = await request("events", { more: last ? { "Last-Event-ID": last } : {}, signal: silent.signal });
      tries = 0;
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      let rest = "";
      for (;;) {
        const { value, done } = await reader.read();
        if (done) return;
        heard = Date.now();
        onStatus("live", 0);
        const parts = (rest + value).split("\n\n");
        rest = parts.pop();
        for (const part of parts) tell(part);
      }
    } finally {
      clearInterval(guard);
    }
  }

  function tell(part) {
    let name = "message", data = "";
    for (const line of part.split("\n")) {
      if (line.startsWith("id: ")) last = line.slice(4);
      else if (line.startsWith("event: ")) name = line.slice(7);
      else if (line.startsWith("data: ")) data += line.slice(6);
    }
    if (data) onEvent(name, JSON.parse(data));
  }

  (async () => {
    while (!control.signal.aborted) {
      try { await once(); } catch (error) {
        if (control.signal.aborted) return;
        if (error.code === 401 || error.code === 403) { onRefused(error); return; }
      }
      if (control.signal.aborted) return;
      onStatus("stale", Math.round((Date.now() - heard) / 1000));
      const wait = Math.min(LONGEST_MS, 500 * 2 ** tries++);
      await new Promise((go) => setTimeout(go, wait * (0.75 + Math.random() / 2)));
    }
  })();
  return () => { control.abort(); clearInterval(watch); };
}
