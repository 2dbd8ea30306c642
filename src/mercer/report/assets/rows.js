/* Rows as people read them: tooltip, details, thumbnails, the table of outliers. */

const TOOLTIP_COLUMNS = 6;
const NEAREST = 8;
const HINT = "Hover over a row to see it; click or tap to keep it here.";

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
  constructor(data, fields) {
    this.data = data;
    this.fields = fields;
    this.colored = data.colored === null ? null : fields.columns[data.colored];
  }

  name(i) {
    const { index, names } = this.data;
    return names ? `row ${index[i]}: ${names[i]}` : `row ${index[i]}`;
  }

  /** What the points are colored by at first, then the other columns. */
  columns() {
    const { columns } = this.fields;
    return this.colored ? [this.colored, ...columns.filter((one) => one !== this.colored)] : columns;
  }

  thumbnail(i, size) {
    const { images } = this.data;
    if (!images) return [];
    return [picture(rowImage(images, i), size, `Image of ${this.name(i)}`)];
  }

  /** What fits a tooltip. */
  brief(i, axes) {
    const scores = axes.map((k) => this.fields.components[k]);
    return this.pairs(i, [...scores, ...this.columns().slice(0, TOOLTIP_COLUMNS)]);
  }

  /** All that is known. */
  full(i) {
    return this.pairs(i, [...this.fields.errors, ...this.columns(), ...this.fields.components]);
  }

  pairs(i, fields) {
    return fields.map((field) => [field.name, field.text(i)]);
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
  const more = texts.fields.columns.length - TOOLTIP_COLUMNS;
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

/** All that is known of the chosen row, and the rows nearest to it. */
function showDetails(box, texts, selection, scatter) {
  const i = selection.place;
  if (i === null) return box.replaceChildren(element("p", HINT));
  const near = element("div", "", "nearest");
  near.append(element("h3", "Nearest rows"));
  for (const [j, far] of nearestRows(texts.data, i, NEAREST)) {
    const button = element("button", texts.name(j));
    button.type = "button";
    button.title = `distance ${shortNumber(Number(far.toPrecision(3)))}`;
    button.addEventListener("click", () => {
      selection.choose(j);
      scatter.reveal(j);
    });
    near.append(button);
  }
  box.replaceChildren(
    element("strong", `Chosen: ${texts.name(i)}`),
    ...texts.thumbnail(i, 140),
    valueList(texts.full(i)),
    near,
  );
}

/** The buttons of the table choose points, and show which is chosen. */
function connectOutliers(table, texts, selection, scatter) {
  if (!table) return;
  const rows = [...table.querySelectorAll("tr[data-place]")];
  const { colored } = texts;
  if (colored) table.querySelector("thead tr")?.append(element("th", colored.name));
  for (const row of rows) {
    if (colored) row.append(element("td", colored.text(Number(row.dataset.place))));
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
