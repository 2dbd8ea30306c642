/* What leaves the page: rows as CSV, the picture as PNG or SVG. All is made here and saved. */

const MARK_PATHS = [
  (r) => `M${-r} 0a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0`,
  (r) => `M${-r} ${-r}h${2 * r}v${2 * r}h${-2 * r}z`,
  (r) => `M0 ${-r}L${r} ${r}H${-r}z`,
  (r) => `M0 ${-r}L${r} 0L0 ${r}L${-r} 0z`,
  (r) => `M${-r / 3} ${-r}h${(2 * r) / 3}v${(2 * r) / 3}h${(2 * r) / 3}v${(2 * r) / 3}h${(-2 * r) / 3}v${(2 * r) / 3}h${(-2 * r) / 3}v${(-2 * r) / 3}h${(-2 * r) / 3}v${(-2 * r) / 3}h${(2 * r) / 3}z`,
  (r) => `M0 ${r}L${r} ${-r}H${-r}z`,
  (r) => `M${-r} 0a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0M${-r / 2} 0a${r / 2} ${r / 2} 0 1 1 ${r} 0a${r / 2} ${r / 2} 0 1 1 ${-r} 0`,
  (r) => `M${-r} ${-r}L0 ${-r / 3}L${r} ${-r}L${r / 3} 0L${r} ${r}L0 ${r / 3}L${-r} ${r}L${-r / 3} 0z`,
  (r) => `M${-1.2 * r} ${-r / 2}h${2.4 * r}v${r}h${-2.4 * r}z`,
  (r) => `M${-r / 2} ${-1.2 * r}h${r}v${2.4 * r}h${-r}z`,
];

/** Hand a file to the person in front of the page. */
function save(name, blob) {
  const link = element("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

function csvCell(value) {
  const text = String(value);
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** Rows at the given places: numbers, names and all fields. */
function rowsAsCSV(data, fields, places) {
  const columns = [["row", (i) => data.index[i]]];
  if (data.names) columns.push(["name", (i) => data.names[i]]);
  for (const field of fields.all) columns.push([field.name, (i) => field.cell(i)]);
  const lines = [columns.map(([name]) => csvCell(name)).join(",")];
  for (const i of places) lines.push(columns.map(([, of]) => csvCell(of(i))).join(","));
  return `${lines.join("\n")}\n`;
}

/** The scatter as it is seen, in shapes that any size fits. */
function scatterAsSVG(scatter) {
  const { canvas, view, paint, ratio, hidden } = scatter;
  const { left, right, top, bottom } = view.frame;
  const ink = themeColor("--ink");
  const parts = [`<rect width="100%" height="100%" fill="${themeColor("--panel")}"/>`];
  const text = (words, x, y, anchor, turn = "") => parts.push(
    `<text x="${x.toFixed(1)}" y="${y.toFixed(1)}" text-anchor="${anchor}" fill="${ink}"${turn}>${words}</text>`);
  const line = (x1, y1, x2, y2) => parts.push(
    `<path d="M${x1.toFixed(1)} ${y1.toFixed(1)}L${x2.toFixed(1)} ${y2.toFixed(1)}" stroke="${themeColor("--grid")}" stroke-width="${ratio}"/>`);
  if (!view.solid) {
    for (const [a, score, at] of scatter.ticks()) {
      if (a === 0) line(at, top, at, bottom);
      else line(left, at, right, at);
      if (a === 0) text(shortNumber(score), at, bottom + 15 * ratio, "middle");
      else text(shortNumber(score), left - 5 * ratio, at + 4 * ratio, "end");
    }
    text(`component ${view.axes[0] + 1}`, (left + right) / 2, bottom + 34 * ratio, "middle");
    const [x, y] = [13 * ratio, (top + bottom) / 2];
    text(`component ${view.axes[1] + 1}`, x, y, "middle", ` transform="rotate(-90 ${x} ${y})"`);
  }
  const shapes = MARK_PATHS.map((path, k) => `<path id="s${k}" d="${path(scatter.radius)}"/>`);
  for (const i of view.order()) {
    const [x, y, code] = [view.px[i], view.py[i], paint.code[i]];
    if (hidden.has(code) || x < left || x > right || y < top || y > bottom) continue;
    const { mask } = scatter.selection;
    const pale = mask && !mask[i] ? ` opacity="${PALE}"` : "";
    parts.push(`<use href="#s${paint.shapes[code]}" x="${x.toFixed(1)}" y="${y.toFixed(1)}" fill="rgb(${paint.colors[code]})"${pale}/>`);
  }
  for (const { x, y, count } of scatter.rings()) {
    parts.push(`<circle cx="${x.toFixed(1)}" cy="${y.toFixed(1)}" r="${RING * ratio}" fill="none" stroke="${ink}" stroke-width="${2 * ratio}"/>`);
    if (count > 1) text(count, x + (RING + 4) * ratio, y - 6 * ratio, "start");
  }
  return `<svg xmlns="${SVG}" viewBox="0 0 ${canvas.width} ${canvas.height}" font-family="sans-serif" font-size="${13 * ratio}" fill-opacity="${OPACITY}" fill-rule="evenodd"><defs>${shapes.join("")}</defs>${parts.join("")}</svg>`;
}
