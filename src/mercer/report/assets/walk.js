/* The walk along a component: an image, bars for few columns, or a curve for many. */

const BARS = 40;
const SVG = "http://www.w3.org/2000/svg";

class Walk {
  constructor(data, scatter, parts) {
    this.walk = data.walk;
    this.components = data.components;
    this.scatter = scatter;
    this.parts = parts;
    this.width = this.walk.rows.length / (this.walk.deviations.length * this.walk.steps.length);
    const [low, high] = extent(this.walk.rows);
    this.range = [Math.min(0, low), Math.max(0, high)];
    fillSelect(parts.component, this.walk.deviations.map((_, k) => [k, `${k + 1}`]));
    parts.step.max = this.walk.steps.length - 1;
    parts.step.value = Math.floor(this.walk.steps.length / 2);
    parts.component.addEventListener("input", () => this.show(true));
    parts.step.addEventListener("input", () => this.show(true));
    // The mark in the scatter is for those who walk; it goes with them.
    parts.step.addEventListener("blur", () => scatter.setMarker(null));
    parts.step.addEventListener("focus", () => this.show(true));
    this.show(false);
  }

  row(component, step) {
    const first = (component * this.walk.steps.length + step) * this.width;
    return this.walk.rows.subarray(first, first + this.width);
  }

  show(marked) {
    const component = Number(this.parts.component.value);
    const step = Number(this.parts.step.value);
    const far = this.walk.steps[step];
    const text = `${far > 0 ? "+" : ""}${shortNumber(far)} standard deviations`;
    this.parts.place.textContent = text;
    this.parts.step.setAttribute("aria-valuetext", text);
    this.parts.view.replaceChildren(this.draw(this.row(component, step), text));
    if (!marked) return;
    const scores = new Float32Array(this.components);
    scores[component] = far * this.walk.deviations[component];
    this.scatter.setMarker(scores);
  }

  draw(row, text) {
    if (this.walk.shape) return picture(paintImage(row, this.walk.shape), 224, `Image at ${text}`);
    const chart = svg("svg", { class: "chart", viewBox: "0 0 460 240", role: "img" });
    chart.setAttribute("aria-label", `Row at ${text}`);
    chart.append(...this.frame(), ...(row.length <= BARS ? this.bars(row) : [this.curve(row)]));
    if (row.length > BARS) return chart;
    const whole = element("div");
    whole.append(chart, valueList(this.walk.names.map((name, k) => [name, shortNumber(row[k])])));
    return whole;
  }

  /** The height of a value in the chart. */
  up(value) {
    const [low, high] = this.range;
    return 226 - (212 * (value - low)) / (high - low || 1);
  }

  /** A line at zero, and the numbers at both ends. */
  frame() {
    const level = this.up(0);
    const line = svg("line", { class: "axis", x1: 50, x2: 455, y1: level, y2: level });
    const ends = this.range.map((value) => {
      const place = { x: 44, y: this.up(value) + 4, "text-anchor": "end" };
      return svg("text", place, String(Number(value.toPrecision(3))));
    });
    return [line, ...ends];
  }

  bars(row) {
    const wide = 400 / row.length;
    return Array.from(row, (value, k) => {
      const [top, bottom] = [this.up(Math.max(value, 0)), this.up(Math.min(value, 0))];
      const height = Math.max(bottom - top, 1);
      const bar = svg("rect", { class: "bar", x: 52 + wide * k, width: wide * 0.8, y: top, height });
      bar.append(svg("title", {}, `${this.walk.names[k]}: ${shortNumber(value)}`));
      return bar;
    });
  }

  curve(row) {
    const across = (k) => 52 + (400 * k) / (row.length - 1);
    const points = Array.from(row, (value, k) => `${across(k).toFixed(1)},${this.up(value).toFixed(1)}`);
    return svg("polyline", { class: "curve", points: points.join(" ") });
  }
}

function svg(name, attributes, text = "") {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text) made.textContent = text;
  return made;
}
