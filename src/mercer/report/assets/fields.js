/*
 * Fields: everything that is known of every row by name, be it a column of the table, an error or
 * a component. Points are colored, searched, counted, shown and saved by fields alone.
 */

const DAY = 86_400_000;

class Field {
  /** `kind` is "number", "date" (milliseconds since 1970) or "group" (codes of `groups`). */
  constructor(name, kind, values, groups = []) {
    Object.assign(this, { name, kind, values, groups });
  }

  missing(i) {
    return this.kind === "group" ? this.values[i] < 0 : Number.isNaN(this.values[i]);
  }

  /** The value of row i as people read it. */
  text(i) {
    return this.missing(i) ? "none" : this.words(this.values[i]);
  }

  /** A value of this field, which need not be one of a row, as people read it. */
  words(value) {
    if (this.kind === "group") return this.groups[value];
    return this.kind === "date" ? this.dateText(value) : shortNumber(value);
  }

  /** The value of row i with all its digits, for a file. */
  cell(i) {
    if (this.missing(i)) return "";
    if (this.kind !== "number") return this.words(this.values[i]);
    const value = this.values[i];
    return this.values instanceof Float32Array ? String(Number(value.toPrecision(8))) : String(value);
  }

  /** Without the time where all are midnights. */
  dateText(value) {
    this.days ??= this.values.every((one) => Number.isNaN(one) || one % DAY === 0);
    if (!Number.isFinite(value) || Math.abs(value) > 8e15) return "none";
    const text = new Date(value).toISOString();
    return this.days ? text.slice(0, 10) : text.replace("T", " ").replace(/(\.000)?Z$/, "");
  }

  /** Whether so many rows have a value of their own that groups say nothing. */
  get telling() {
    return this.kind !== "group" || this.groups.length <= Math.max(12, this.values.length / 2);
  }
}

/** The fields of the page: columns, the error if there is one, and the components. */
function makeFields(data) {
  const columns = data.columns.map((one) => new Field(one.name, one.kind, one.values, one.groups));
  const errors = data.errors ? [new Field("reconstruction error", "number", data.errors)] : [];
  const components = Array.from({ length: data.components }, (_, k) => {
    const scores = data.scores.subarray(k * data.count, (k + 1) * data.count);
    return new Field(`component ${k + 1}`, "number", scores);
  });
  return { columns, errors, components, all: [...columns, ...errors, ...components] };
}

/** Places of the rows nearest to row i by all components, and their distances. */
function nearestRows(data, i, count) {
  const squares = new Float64Array(data.count);
  for (let k = 0; k < data.components; k++) {
    const scores = data.scores.subarray(k * data.count, (k + 1) * data.count);
    const own = scores[i];
    for (let j = 0; j < data.count; j++) squares[j] += (scores[j] - own) ** 2;
  }
  const best = [];
  for (let j = 0; j < data.count; j++) {
    if (j === i || (best.length === count && squares[j] >= squares[best.at(-1)])) continue;
    let at = best.length;
    while (at > 0 && squares[best[at - 1]] > squares[j]) at--;
    best.splice(at, 0, j);
    if (best.length > count) best.pop();
  }
  return best.map((j) => [j, Math.sqrt(squares[j])]);
}
