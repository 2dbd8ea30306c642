/*
 * Histograms that filter: a bar for some values of a field, of all rows and of those selected. A
 * brush over bars selects their rows, and several histograms those that all of them mean.
 */

const BINS = 24;
const BARS_OF_GROUPS = 12;
// Histograms that are there from the beginning.
const FIRST_HISTOGRAMS = 6;
const HISTOGRAM = { width: 210, height: 64 };
const HISTOGRAM_HELP = "Drag over bars to select their rows; click to clear. Arrow keys choose a bar, with Shift more of them; Escape clears the selection.";

/** For every row the number of its bar, and what each bar means. */
function makeBins(field) {
  const bin = new Uint8Array(field.values.length);
  const labels = [];
  if (field.kind === "group") {
    const rank = groupRanks(field, BARS_OF_GROUPS);
    labels.push(...rank.names);
    for (let i = 0; i < bin.length; i++) bin[i] = rank.of[field.values[i]] ?? labels.length;
  } else {
    const [low, high] = extent(field.values);
    const step = (high - low) / BINS || 1;
    for (let k = 0; k < BINS; k++) labels.push([low + k * step, low + (k + 1) * step]);
    for (let i = 0; i < bin.length; i++) {
      const at = Math.floor((field.values[i] - low) / step);
      bin[i] = Number.isNaN(field.values[i]) ? BINS : Math.min(at, BINS - 1);
    }
  }
  if (bin.includes(labels.length)) labels.push("missing");
  return { bin, labels };
}

class Histogram {
  constructor(field, selection) {
    Object.assign(this, { field, selection, ...makeBins(field), brush: null });
    this.all = this.counts(null);
    this.box = element("figure", "", "histogram");
    this.range = element("output");
    const caption = element("figcaption", field.name);
    caption.title = field.name;
    this.canvas = element("canvas");
    this.canvas.tabIndex = 0;
    this.canvas.setAttribute("role", "application");
    this.canvas.setAttribute("aria-label", `Histogram of ${field.name}. ${HISTOGRAM_HELP}`);
    this.box.append(caption, this.canvas, this.range);
    const listen = (name, act) => this.canvas.addEventListener(name, act);
    listen("pointerdown", (event) => this.press(event));
    listen("pointermove", (event) => this.move(event));
    listen("pointerup", () => this.lift());
    listen("keydown", (event) => this.key(event));
    this.draw();
  }

  counts(mask) {
    const counts = new Uint32Array(this.labels.length);
    for (let i = 0; i < this.bin.length; i++) counts[this.bin[i]] += mask ? mask[i] : 1;
    return counts;
  }

  barAt(event) {
    const box = this.canvas.getBoundingClientRect();
    const at = Math.floor(((event.clientX - box.left) / box.width) * this.labels.length);
    return Math.max(0, Math.min(this.labels.length - 1, at));
  }

  press(event) {
    this.canvas.setPointerCapture(event.pointerId);
    this.start = this.barAt(event);
    this.before = this.brush;
    this.dragged = false;
  }

  move(event) {
    const at = this.barAt(event);
    this.canvas.title = `${this.words([at, at])}: ${this.all[at]} rows`;
    if (this.start === undefined) return;
    this.dragged ||= at !== this.start;
    if (this.dragged) this.select([Math.min(this.start, at), Math.max(this.start, at)]);
  }

  lift() {
    if (this.start !== undefined && !this.dragged) {
      this.select(this.before ? null : [this.start, this.start]);
    }
    this.start = undefined;
  }

  key(event) {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    const last = this.labels.length - 1;
    if (event.key === "Escape") this.select(null);
    else if (step && event.shiftKey && this.brush) {
      this.select([this.brush[0], Math.max(this.brush[0], Math.min(last, this.brush[1] + step))]);
    } else if (step) {
      const from = this.brush ? this.brush[0] + step : step > 0 ? 0 : last;
      const at = Math.max(0, Math.min(last, from));
      this.select([at, at]);
    } else return;
    event.preventDefault();
  }

  /** Select the rows of bars from one to another, or clear the selection. */
  select(brush) {
    this.brush = brush;
    const mask = brush && new Uint8Array(this.bin.length);
    for (let i = 0; mask && i < mask.length; i++) {
      mask[i] = this.bin[i] >= brush[0] && this.bin[i] <= brush[1] ? 1 : 0;
    }
    this.selection.mark(mask, this.field);
  }

  /** What bars from one to another mean, in words. */
  words(brush) {
    if (!brush) return "";
    const chosen = this.labels.slice(brush[0], brush[1] + 1);
    const ranges = chosen.filter((one) => Array.isArray(one));
    const words = chosen.filter((one) => !Array.isArray(one));
    if (ranges.length) {
      const round = (value) => this.field.words(this.field.kind === "number" ? Number(value.toPrecision(4)) : value);
      words.unshift(`${round(ranges[0][0])} to ${round(ranges.at(-1)[1])}`);
    }
    return words.join(", ");
  }

  draw() {
    if (!this.selection.sets.has(this.field)) this.brush = null;
    const ratio = Math.min(devicePixelRatio || 1, 2);
    const [width, height] = [HISTOGRAM.width * ratio, HISTOGRAM.height * ratio];
    [this.canvas.width, this.canvas.height] = [width, height];
    const context = this.canvas.getContext("2d");
    const selected = this.selection.mask ? this.counts(this.selection.mask) : this.all;
    const most = this.all.reduce((a, b) => Math.max(a, b), 1);
    const wide = width / this.labels.length;
    this.labels.forEach((_, k) => {
      const bar = (count, color) => {
        const high = count ? Math.max(ratio, (count / most) * (height - 4 * ratio)) : 0;
        context.fillStyle = themeColor(color);
        context.fillRect(k * wide + ratio / 2, height - high, wide - ratio, high);
      };
      bar(this.all[k], "--line");
      bar(selected[k], "--accent");
    });
    if (this.brush) {
      const [from, to] = this.brush;
      context.lineWidth = 2 * ratio;
      context.strokeStyle = themeColor("--mark");
      context.strokeRect(from * wide + ratio, ratio, (to + 1 - from) * wide - 2 * ratio, height - 2 * ratio);
    }
    this.range.textContent = this.words(this.brush);
  }
}

/** Histograms of the first fields that tell something, and a list of the others to add. */
function connectHistograms(fields, selection) {
  const [box, add] = [byId("histograms"), byId("histogram-add")];
  const telling = [...fields.columns, ...fields.errors, ...fields.components].filter((one) => one.telling);
  const shown = [];
  const show = (field) => {
    const made = new Histogram(field, selection);
    shown.push(made);
    box.append(made.box);
  };
  telling.slice(0, FIRST_HISTOGRAMS).forEach(show);
  const choices = () => {
    const left = telling.filter((field) => !shown.some((one) => one.field === field));
    byId("histogram-more").hidden = !left.length;
    fillSelect(add, [["", "choose"], ...left.map((field) => [telling.indexOf(field), field.name])]);
  };
  add.addEventListener("change", () => {
    if (add.value !== "") show(telling[add.value]);
    choices();
  });
  choices();
  let asked = null;
  const redraw = () => {
    asked ??= requestAnimationFrame(() => {
      asked = null;
      shown.forEach((one) => one.draw());
    });
  };
  selection.whenMarked.push(redraw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
}
