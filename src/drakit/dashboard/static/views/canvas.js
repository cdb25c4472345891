// The map's picture: where each cell is, and how it looks. Only what is on the screen is drawn.
const GAP = 3, PAD = 10, TITLE = 30, LABEL = 18;

export function arrange(cells, groupOf, width, names) {
  const size = cells.length > 1500 ? 11 : cells.length > 400 ? 16 : cells.length > 150 ? 22 : 30;
  const groups = new Map();
  for (const cell of cells) {
    const group = groupOf(cell), node = cell.node || names.several;
    if (!groups.has(group)) groups.set(group, new Map());
    const nodes = groups.get(group);
    if (!nodes.has(node)) nodes.set(node, []);
    nodes.get(node).push(cell);
  }
  const placed = [], titles = [], blocks = [];
  let y = 4;
  for (const group of [...groups.keys()].sort(byName)) {
    if (group) { titles.push({ text: group, y }); y += TITLE; }
    let x = 0, tallest = 0;
    for (const node of [...groups.get(group).keys()].sort(byName)) {
      const found = groups.get(group).get(node);
      const most = Math.max(1, Math.floor((width - 2 * PAD + GAP) / (size + GAP)));
      const columns = Math.min(found.length <= 8 ? Math.max(found.length, 3) : Math.ceil(Math.sqrt(found.length * 2)), most);
      const wide = Math.max(columns * (size + GAP) - GAP + 2 * PAD, 84);
      const high = Math.ceil(found.length / columns) * (size + GAP) - GAP + LABEL + 2 * PAD;
      if (x && x + wide > width) { x = 0; y += tallest + 8; tallest = 0; }
      blocks.push({ text: node, x, y, w: Math.min(wide, width), h: high });
      found.forEach((cell, at) => placed.push({
        cell, x: x + PAD + (at % columns) * (size + GAP), y: y + PAD + LABEL + Math.floor(at / columns) * (size + GAP), size,
      }));
      x += wide + 8;
      tallest = Math.max(tallest, high);
    }
    y += tallest + 14;
  }
  return { placed, titles, blocks, height: y };
}

const byName = (a, b) => a.localeCompare(b, "en", { numeric: true });

export function colours(element) {
  const style = getComputedStyle(element);
  const read = (name) => style.getPropertyValue(`--${name}`).trim();
  return Object.fromEntries(["free", "used", "shared", "tainted", "unhealthy", "blocked", "preparing", "text", "quiet", "surface", "line", "accent"].map((name) => [name, read(name)]));
}

export function draw(canvas, layout, top, { lit, focused, palette }) {
  const ratio = devicePixelRatio || 1, width = canvas.clientWidth, height = canvas.clientHeight;
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
  }
  const pen = canvas.getContext("2d");
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, width, height);
  pen.translate(0, -top);
  const seen = (y, h) => y + h >= top && y <= top + height;
  pen.textBaseline = "middle";
  pen.font = "600 13px system-ui, sans-serif";
  pen.fillStyle = palette.text;
  for (const each of layout.titles) if (seen(each.y, TITLE)) pen.fillText(each.text, 2, each.y + 14, width - 4);
  pen.font = "11px system-ui, sans-serif";
  for (const each of layout.blocks) {
    if (!seen(each.y, each.h)) continue;
    pen.fillStyle = palette.surface;
    box(pen, each.x, each.y, each.w, each.h, 8);
    pen.fill();
    pen.fillStyle = palette.quiet;
    pen.fillText(fitted(pen, each.text, each.w - 2 * PAD), each.x + PAD, each.y + PAD + 4);
  }
  for (const each of layout.placed) {
    if (!seen(each.y, each.size)) continue;
    pen.globalAlpha = lit && !lit.has(each.cell.key) ? 0.16 : 1;
    cell(pen, each, palette);
    if (each.cell.marked) mark(pen, each, palette);
    pen.globalAlpha = 1;
    if (focused === each.cell.key) {
      pen.strokeStyle = palette.text;
      pen.lineWidth = 2;
      box(pen, each.x - 2, each.y - 2, each.size + 4, each.size + 4, 5);
      pen.stroke();
    }
  }
}

function fitted(pen, text, width) {
  if (pen.measureText(text).width <= width) return text;
  let kept = text;
  while (kept.length > 3 && pen.measureText(`${kept}…`).width > width) kept = kept.slice(0, -1);
  return `${kept}…`;
}

function box(pen, x, y, w, h, r) {
  pen.beginPath();
  pen.roundRect(x, y, w, h, r);
}

// Every state has a shape of its own as well: colours alone do not tell everybody.
function cell(pen, { cell: { state, share }, x, y, size: s }, palette) {
  const r = Math.max(2, s / 5), colour = palette[state] || palette.quiet;
  pen.lineWidth = 1.5;
  box(pen, x + 0.75, y + 0.75, s - 1.5, s - 1.5, r);
  if (state === "free") { pen.globalAlpha *= 0.85; pen.strokeStyle = colour; pen.stroke(); pen.globalAlpha /= 0.85; return; }
  if (state === "used") { pen.fillStyle = colour; pen.fill(); return; }
  pen.save();
  pen.strokeStyle = colour;
  pen.stroke();
  pen.clip();
  pen.fillStyle = colour;
  if (state === "shared") { const h = Math.max(share || 0, 0.12) * s; pen.fillRect(x, y + s - h, s, h); }
  else if (state === "preparing") { pen.beginPath(); pen.moveTo(x, y + s); pen.lineTo(x + s, y); pen.lineTo(x + s, y + s); pen.fill(); }
  else if (state === "unhealthy") {
    pen.fillRect(x, y, s, s);
    pen.strokeStyle = palette.surface;
    pen.lineWidth = Math.max(1.5, s / 8);
    pen.beginPath();
    pen.moveTo(x + s * 0.3, y + s * 0.3); pen.lineTo(x + s * 0.7, y + s * 0.7);
    pen.moveTo(x + s * 0.7, y + s * 0.3); pen.lineTo(x + s * 0.3, y + s * 0.7);
    pen.stroke();
  } else {
    pen.lineWidth = state === "tainted" ? 2 : 1;
    pen.beginPath();
    for (let at = -s; at < s; at += 4) { pen.moveTo(x + at, y + s); pen.lineTo(x + at + s, y); }
    pen.stroke();
  }
  pen.restore();
}

function mark(pen, { x, y, size: s }, palette) {
  pen.fillStyle = palette.tainted;
  pen.strokeStyle = palette.surface;
  pen.lineWidth = 1.5;
  pen.beginPath();
  pen.arc(x + s - s / 6, y + s / 6, Math.max(3, s / 5), 0, 7);
  pen.fill();
  pen.stroke();
}

export function cellAt(layout, x, y) {
  return layout.placed.find((each) => x >= each.x - 1 && x <= each.x + each.size + 1 && y >= each.y - 1 && y <= each.y + each.size + 1);
}

/** The nearest cell in a direction: dx and dy are -1, 0 or 1. */
export function neighbour(layout, key, dx, dy) {
  const from = layout.placed.find((each) => each.cell.key === key);
  if (!from) return layout.placed[0];
  if (dx) return layout.placed[layout.placed.indexOf(from) + dx] || from;
  let best = from, least = Infinity;
  for (const each of layout.placed) {
    if ((each.y - from.y) * dy <= 0) continue;
    const far = Math.abs(each.y - from.y) * 4 + Math.abs(each.x - from.x);
    if (far < least) { least = far; best = each; }
  }
  return best;
}
