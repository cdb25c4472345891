// Every text of the page. A text with a value in it is a function.
const s = (n, one, many) => `${n} ${n === 1 ? one : many || one + "s"}`;

export const T = {
  title: "drakit",
  skip: "Skip to content",
  views: { map: "Map", pending: "Pending", flow: "Flow", time: "Over time", whatif: "What-if" },
  nav: "Views",
  live: "live", connecting: "connecting", stale: "stale",
  staleFor: (n) => `stale for ${n} s`,
  staleNote: "What you see may be old: there is no connection to the server. It is tried again by itself.",
  theme: { label: "Colours", auto: "auto", light: "light", dark: "dark" },
  logout: "Log out",
  login: {
    heading: "Log in", token: "Bearer token", as: "Act as user (optional)", groups: "and groups, with commas (optional)", only: "Only this namespace (optional)",
    submit: "Log in", hint: "The token stays in this tab. drakit up writes one to dashboard.token, drakit dashboard prints one; kubectl create token makes one for a service account.",
    refused: "This token was refused.",
  },
  mayNot: "You may not see everything:",
  states: {
    free: "free", used: "used", shared: "shared", tainted: "tainted", unhealthy: "unhealthy",
    blocked: "blocked by a sibling", preparing: "being prepared",
  },
  map: {
    label: "Map of devices. Arrow keys move, Enter shows a device, Escape closes it.",
    group: "Group by", groups: { node: "node", pool: "pool", model: "model", zone: "zone" },
    class: "Class", namespace: "Namespace", claim: "Claim", any: "any",
    selector: "Selector (CEL)", selectorHint: 'device.attributes["gpu.example.com"].model == "a100"',
    matching: (n, all) => `${n} of ${all} match`,
    evaluationErrors: (n, e) => `${s(n, "device")} with an error: ${e}`,
    summary: (t) => `${t.used} of ${t.cards} used`, free: (n) => `${n} free`, nodes: (n) => s(n, "node"),
    pods: (n) => s(n, "pod"), pending: (n) => `${n} pending`, tainted: (n) => `${n} tainted`,
    none: "no zone", several: "several nodes", empty: "No driver has published a device yet.",
    nothing: "No device matches.", asList: "As a list", asMap: "As a map", listed: (n, all) => `${n} of ${all} devices`,
    columns: ["Device", "Node", "Pool", "State", "Used by"], taken: (p) => `${p} % taken`, marked: "has a taint",
  },
  device: {
    close: "Close", holders: "Held by", since: "since", nobody: "Nobody holds it.", attributes: "Attributes",
    capacity: "Capacity left", counters: "Counters left", taints: "Taints", classes: "Classes", pods: "pods",
    of: (left, total) => `${left} of ${total}`, reached: (n) => `reached by ${s(n, "node")}`, admin: "admin access",
    tryTaint: "What if it were tainted?",
  },
  pending: {
    heading: "Pods that wait", none: "Nothing waits. Every pod has its node.", since: "waiting for",
    more: (n, all) => `The ${n} that wait longest, of ${all}.`, funnel: "Devices left after each check",
    wanted: (n) => (n == null ? "wants all" : `wants ${n}`), best: (n, node) => `most on one node: ${n}${node ? ` (${node})` : ""}`,
    would: "What would make it fit", looking: "Looking for what would help…", noHelp: "No change makes it fit:",
    try: "Try it", tried: "tried, nothing was changed", show: "What would help?", refused: "Refused", holders: "Held now by",
    flow: "Life of the pod", others: (n) => `and ${s(n, "other reason")}`,
  },
  flow: {
    heading: "The life of a pod", pick: "Pod", none: "There are no pods.", filter: "Filter pods",
    steps: {
      created: "created", claim: "claim made", allocated: "allocated", scheduled: "scheduled", bound: "bound",
      prepared: "prepared", running: "running", ended: "ended", released: "released", deleted: "deleted",
    },
    gone: (at) => `This pod was deleted at ${at}. Its life is told from what this page saw of it.`,
    notYet: "not yet", after: "after", total: "in all", columns: ["Pod", "Phase", "Node", "Created"],
    picture: (name) => `Timeline of pod ${name}`,
  },
  object: {
    yaml: "YAML", events: "Events", conditions: "Conditions", noEvents: "No events.", noConditions: "No conditions.",
    gone: (at) => `Deleted at ${at}. This is what was last seen of it.`,
    cut: (n) => `Cut: the whole text has ${n} characters.`, explain: "How it stands", back: "Back",
    columns: { events: ["When", "Type", "Reason", "Message"], conditions: ["Type", "Status", "Since", "Reason"] },
  },
  time: {
    heading: "Over time", csv: "Save as CSV", none: "Figures come in a few seconds.",
    devices: "Devices", total: "total", allocated: "allocated", pending: "Pods that wait", waiting: "waiting",
    latency: "Scheduling latency (s)", p50: "p50", p99: "p99", fragmentation: "Fragmentation of free devices (%)",
    fragmented: "fragmented", perClass: "Allocated per class (%)", perNamespace: "Allocated per namespace", range: "Range",
    ranges: { 900: "15 min", 3600: "1 h", 21600: "6 h", 86400: "1 day" },
    latest: (label, value) => `${label}: ${value}`,
  },
  whatif: {
    heading: "What if…", intro: "Nothing is touched: the scheduler's own code is run on a copy of the cluster.",
    addNodes: "Add nodes", like: "like node, or template", number: "How many", taint: "Taint a device", evict: "Evict a pod",
    drain: "Drain a node", yaml: "Apply YAML", template: "Or nodes from a template (YAML of a Node and its ResourceSlices)", ask: "Ask", asking: "Asking…", none: "nothing", before: "Before", after: "After",
    nodes: "nodes", used: "devices used", free: "free", largest: "most free on one node", fragmentation: "fragmentation",
    placed: (n) => `${s(n, "pod")} placed`, pending: (n) => `${n} still pending`, on: "on", moved: "moved from",
    apply: "Make these changes", applySure: "This changes the cluster. Go on?", done: "Done:", added: "New nodes",
    nothingPending: "No pod was waiting; nothing would move.", pasted: "From a suggestion",
  },
  errors: { failed: (what) => `That did not work: ${what}`, offline: "the server cannot be reached" },
};

export function ago(text, now = Date.now()) {
  if (!text) return "";
  return span((now - Date.parse(text)) / 1000);
}

export function span(seconds) {
  const n = Math.max(seconds, 0);
  if (n < 1) return `${Math.round(n * 1000)} ms`;
  if (n < 90) return `${Math.round(n)} s`;
  if (n < 5400) return `${Math.round(n / 60)} min`;
  if (n < 129600) return `${Math.round(n / 3600)} h`;
  return `${Math.round(n / 86400)} d`;
}
