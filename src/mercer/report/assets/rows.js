/* Rows as people read them: tooltip, details, thumbnails, the table of outliers. */

const TOOLTIP_COLUMNS = 6;
const HINT = "Point at a row to see it; click or tap to keep it here.";

/** The point chosen, the one under the pointer and those selected, with those who want to know. */
class Selection {
  constructor() {
    this.place = null;
    this.hovered = null;
    this.marked = null;
    this.whenMarked = [];
    this.whenChosen = [];
    this.whenHovered = [];
  }

  choose(place) {
    this.place = place;
    for (const listener of this.whenChosen) listener();
    this.hover(null);
  }

  /** Select many rows by their places, or none by null; `by` says what did it. */
  mark(places, by = null) {
    this.marked = places;
    for (const listener of this.whenMarked) listener(by);
  }

  hover(place) {
    this.hovered = place;
    for (const listener of this.whenHovered) listener();
  }
}

/** An element with text, which is never read as markup. */
function element(name, text = "", className = "") {
  const made = document.createElement(name);
  made.textContent = text;
  if (className) made.className = className;
  return made;
}

/** Pairs of a name and a value as a definition list. */
function valueList(pairs) {
  const list = element("dl", "", "values");
  for (const [name, value] of pairs) list.append(element("dt", name), element("dd", value));
  return list;
}

/** Bytes of an image on a canvas of its own. */
function paintImage(pixels, [height, width, channels]) {
  const canvas = element("canvas", "", "picture");
  [canvas.width, canvas.height] = [width, height];
  const image = new ImageData(width, height);
  for (let p = 0; p < width * height; p++) {
    for (let c = 0; c < 3; c++) image.data[4 * p + c] = pixels[channels * p + (channels === 3 ? c : 0)];
    image.data[4 * p + 3] = 255;
  }
  canvas.getContext("2d").putImageData(image, 0, 0);
  return canvas;
}

/** The image of row i. */
function rowImage({ pixels, shape }, i) {
  const bytes = shape.reduce((a, b) => a * b);
  return paintImage(pixels.subarray(i * bytes, (i + 1) * bytes), shape);
}

/** An image at some width on the screen, for those who see it and those who are told of it. */
function picture(canvas, size, label) {
  canvas.style.width = `${size}px`;
  canvas.style.height = `${(size * canvas.height) / canvas.width}px`;
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", label);
  return canvas;
}

class RowTexts {
  constructor(data) {
    this.data = data;
  }

  name(i) {
    const { index, names } = this.data;
    return names ? `row ${index[i]}: ${names[i]}` : `row ${index[i]}`;
  }

  group(i) {
    const { coloring, columns } = this.data;
    if (!coloring || columns.includes(coloring.name)) return [];
    const value = coloring.values[i];
    return [[coloring.name, coloring.groups ? coloring.groups[value] ?? "none" : shortNumber(value)]];
  }

  columns(i, most) {
    const { columns, values } = this.data;
    return columns.slice(0, most).map((name, k) => [name, shortNumber(values[i * columns.length + k])]);
  }

  scores(i, components) {
    const { scores, count } = this.data;
    return components.map((k) => [`component ${k + 1}`, shortNumber(scores[k * count + i])]);
  }

  error(i) {
    return this.data.errors ? [["reconstruction error", shortNumber(this.data.errors[i])]] : [];
  }

  thumbnail(i, size) {
    const { images } = this.data;
    if (!images) return [];
    return [picture(rowImage(images, i), size, `Image of ${this.name(i)}`)];
  }

  /** What fits a tooltip. */
  brief(i, axes) {
    return [...this.group(i), ...this.scores(i, axes), ...this.columns(i, TOOLTIP_COLUMNS)];
  }

  /** All that is known. */
  full(i) {
    const components = Array.from({ length: this.data.components }, (_, k) => k);
    return [...this.group(i), ...this.error(i), ...this.columns(i), ...this.scores(i, components)];
  }

  /** One line for those who listen. */
  spoken(i, axes) {
    const pairs = this.brief(i, axes);
    return `${this.name(i)}: ${pairs.map(([name, value]) => `${name} ${value}`).join(", ")}`;
  }
}

/** The tooltip follows the point under the pointer, or else the one chosen. */
function showTooltip(box, texts, scatter, selection) {
  const i = selection.hovered ?? selection.place;
  box.hidden = i === null;
  if (i === null) return;
  const more = texts.data.columns.length - TOOLTIP_COLUMNS;
  const pairs = texts.brief(i, scatter.view.axes);
  const parts = [element("strong", texts.name(i)), ...texts.thumbnail(i, 84), valueList(pairs)];
  if (more > 0) parts.push(element("small", `and ${more} more`));
  box.replaceChildren(...parts);
  const [x, y] = scatter.placeOf(i);
  const stage = box.parentElement;
  const right = x + 16 + box.offsetWidth > stage.clientWidth;
  box.style.left = `${Math.max(0, right ? x - 16 - box.offsetWidth : x + 16)}px`;
  box.style.top = `${Math.max(0, Math.min(y + 12, stage.clientHeight - box.offsetHeight))}px`;
}

/** All that is known of the chosen row. */
function showDetails(box, texts, selection) {
  const i = selection.place;
  if (i === null) return box.replaceChildren(element("p", HINT));
  box.replaceChildren(
    element("strong", `Chosen: ${texts.name(i)}`),
    ...texts.thumbnail(i, 140),
    valueList(texts.full(i)),
  );
}

/** The buttons of the table choose points, and show which is chosen. */
function connectOutliers(table, selection, scatter) {
  const rows = [...table.querySelectorAll("tr[data-place]")];
  for (const row of rows) {
    row.addEventListener("click", () => {
      selection.choose(Number(row.dataset.place));
      scatter.reveal(selection.place);
    });
  }
  selection.whenChosen.push(() => {
    for (const row of rows) {
      const chosen = Number(row.dataset.place) === selection.place;
      row.toggleAttribute("aria-current", chosen);
      row.querySelector("button").setAttribute("aria-pressed", String(chosen));
    }
  });
}
