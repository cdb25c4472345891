// What the page knows: one object, changed in one place, and those who want to hear of it.
import { useEffect, useState, useRef } from "./vendor/htm-preact.js";
import { ask } from "./server.js";

export const store = {
  cells: new Map(), summary: null, status: "connecting", staleFor: 0, state: { forbidden: [], problem: "" },
  version: 0, allowChanges: false, templates: [], draft: null,
};
const listeners = new Set();

export function change(part) {
  Object.assign(store, part);
  for (const each of listeners) each();
}

export function onMap(data) {
  if (data.whole) store.cells = new Map();
  for (const cell of data.cells || []) store.cells.set(cell.key, cell);
  for (const key of data.gone || []) store.cells.delete(key);
  change({ version: store.version + 1, summary: data.summary || store.summary });
}

/** Draw again whenever the store changes. */
export function useStore() {
  const [, again] = useState(0);
  useEffect(() => {
    const hear = () => again((n) => n + 1);
    listeners.add(hear);
    return () => listeners.delete(hear);
  }, []);
  return store;
}

/** The answer to a question, asked again (not more than once a second) when the cluster or `tick` changes. */
export function useAnswer(name, parameters, { tick = 0 } = {}) {
  const [found, set] = useState({ data: null, error: "" });
  const { version } = useStore();
  const key = name ? name + JSON.stringify(parameters || {}) : "";
  const last = useRef({ key: "", at: 0 });
  useEffect(() => {
    if (!name) return undefined;
    const fresh = last.current.key !== key;
    if (fresh) set({ data: null, error: "" });
    const control = new AbortController();
    const wait = fresh ? 0 : Math.max(0, last.current.at + 1000 - Date.now());
    const timer = setTimeout(async () => {
      last.current = { key, at: Date.now() };
      try {
        set({ data: await ask(name, parameters, control.signal), error: "" });
      } catch (error) {
        if (error.name !== "AbortError") set((old) => ({ data: error.code ? null : old.data, error: error.message }));
      }
    }, wait);
    return () => { clearTimeout(timer); control.abort(); };
  }, [key, version, tick]);
  return found;
}
