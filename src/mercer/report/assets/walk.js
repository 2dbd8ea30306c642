/* The walk along a component: an image, bars with names, or a curve for many columns. */

// Columns that get a bar each, and those of many that change most.
const BARS = 40;
const MOST_CHANGED = 12;
const SVG = "http://www.w3.org/2000/svg";

class Walk {
  constructor(data, scatter, parts, showAxis) {
    this.walk = data.walk;
    this.components = data.components;
    this.scatter = scatter;
    this.parts = parts;
    this.width = this.walk.rows.length / (this.walk.deviations.length * this.walk.steps.length);
    fillSelect(parts.component, this.walk.deviations.map((_, k) => [k, `${k + 1}`]));
    parts.step.max = this.walk.steps.length - 1;
    parts.step.value = Math.floor(this.walk.steps.length / 2);
    const begin = () => {
      showAxis(Number(parts.component.value));
      this.begun = true;
      this.show();
    };
    parts.component.addEventListener("input", begin);
    parts.step.addEventListener("input", begin);
    parts.step.addEventListener("focus", begin);
    // The way and the image in the scatter hide points: they are for those who walk.
    this.begun = false;
    this.show();
  }

  row(component, step) {
    const first = (component * this.walk.steps.length + step) * this.width;
    return this.walk.rows.subarray(first, first + this.width);
  }

  show() {
    const component = Number(this.parts.component.value);
    const step = Number(this.parts.step.value);
    const far = this.walk.steps[step];
    const text = `${far > 0 ? "+" : ""}${shortNumber(far)} standard deviations`;
    this.parts.place.textContent = text;
    this.parts.step.setAttribute("aria-valuetext", text);
    const row = this.row(component, step);
    const image = this.walk.shape ? paintImage(row, this.walk.shape) : null;
    const view = image ? picture(image, 200, `Image at ${text}`) : this.draw(row, component, text);
    this.parts.view.replaceChildren(view);
    if (!this.begun) return;
    const at = (steps) => {
      const scores = new Float32Array(this.components);
      scores[component] = steps * this.walk.deviations[component];
      return scores;
    };
    const ends = [at(this.walk.steps[0]), at(this.walk.steps.at(-1))];
    this.scatter.setTrail({ component, ends, scores: at(far), image });
  }

  /** Bars of the columns; of many a curve first, and bars of those that change most. */
  draw(row, component, text) {
    const ranges = this.ranges(component);
    if (row.length <= BARS) return this.bars(row, ranges, [...row.keys()]);
    const change = (k) => (ranges.high[k] - ranges.low[k]) / (ranges.all[k] || 1);
    const most = [...row.keys()].sort((a, b) => change(b) - change(a)).slice(0, MOST_CHANGED);
    const whole = element("div");
    const title = element("p", `The ${MOST_CHANGED} columns that change most:`, "help");
    whole.append(this.curve(row, text), title, this.bars(row, ranges, most));
    return whole;
  }

  /** What each column goes through on this walk, and how far columns go on any. */
  ranges(component) {
    const steps = this.walk.steps.length;
    const low = Float32Array.from(this.row(component, 0));
    const high = Float32Array.from(low);
    for (let step = 1; step < steps; step++) {
      this.row(component, step).forEach((value, k) => {
        low[k] = Math.min(low[k], value);
        high[k] = Math.max(high[k], value);
      });
    }
    const all = new Float32Array(this.width).fill(0);
    this.walk.rows.forEach((value, k) => {
      const column = k % this.width;
      all[column] = Math.max(all[column], Math.abs(value - this.average(column)));
    });
    return { low, high, all };
  }

  /** The row at the center of the scatter: every walk passes it in the middle. */
  average(column) {
    return this.row(0, Math.floor(this.walk.steps.length / 2))[column];
  }

  /** A line a column: its name, a bar from the middle row to its value, and the value. */
  bars(row, ranges, columns) {
    const table = element("table", "", "bars");
    for (const k of columns) {
      const line = element("tr");
      const name = element("th", this.walk.names[k]);
      name.scope = "row";
      name.title = this.walk.names[k];
      const cell = element("td");
      cell.append(this.bar(row[k], this.average(k), ranges.all[k]));
      line.append(name, cell, element("td", String(Number(row[k].toPrecision(3)))));
      table.append(line);
    }
    return table;
  }

  bar(value, average, reach) {
    const track = element("div", "", "track");
    track.setAttribute("aria-hidden", "true");
    const far = reach ? (50 * (value - average)) / reach : 0;
    const fill = element("i");
    fill.style.left = `${50 + Math.min(0, far)}%`;
    fill.style.width = `${Math.abs(far)}%`;
    const middle = element("b");
    middle.style.left = "calc(50% - 1px)";
    track.append(fill, middle);
    return track;
  }

  /** All columns in their order, and the middle row beneath. */
  curve(row, text) {
    const [low, high] = extent(this.walk.rows);
    const up = (value) => 150 - (140 * (value - low)) / (high - low || 1);
    const across = (k) => 4 + (452 * k) / (row.length - 1);
    const way = (values) => Array.from(values, (value, k) =>
      `${across(k).toFixed(1)},${up(value).toFixed(1)}`).join(" ");
    const chart = svg("svg", { class: "chart", viewBox: "0 0 460 160", role: "img" });
    chart.setAttribute("aria-label", `Row at ${text}`);
    const average = Array.from(row, (_, k) => this.average(k));
    chart.append(svg("polyline", { class: "average", points: way(average) }));
    chart.append(svg("polyline", { class: "curve", points: way(row) }));
    return chart;
  }
}

function svg(name, attributes, text = "") {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text) made.textContent = text;
  return made;
}
