/* Sets of rows: inside a lasso, or found by a search. */

const COMPARE = /^(.+?)\s*(<=|>=|=|<|>)\s*(-?[\d.]+(?:e-?\d+)?)$/i;
const TESTS = {
  "<": (a, b) => a < b, "<=": (a, b) => a <= b, ">": (a, b) => a > b, ">=": (a, b) => a >= b,
  "=": (a, b) => Math.abs(a - b) <= 1e-6 * Math.max(1, Math.abs(b)),
};

/** Whether a place lies inside a polygon, by the crossings of a ray. */
function inside(polygon, x, y) {
  let odd = false;
  for (let k = 0, j = polygon.length - 1; k < polygon.length; j = k++) {
    const [[ax, ay], [bx, by]] = [polygon[k], polygon[j]];
    if (ay > y !== by > y && x < ((bx - ax) * (y - ay)) / (by - ay) + ax) odd = !odd;
  }
  return odd;
}

/** The rows that a search means: words of names and groups, a row's number, or width > 3. */
class Search {
  constructor(data) {
    this.data = data;
    this.columns = new Map(data.columns.map((name, k) => [name.toLowerCase(), (i) =>
      data.values[i * data.columns.length + k]]));
    for (let k = 0; k < data.components; k++) {
      this.columns.set(`component ${k + 1}`, (i) => data.scores[k * data.count + i]);
    }
    if (data.errors) this.columns.set("error", (i) => data.errors[i]);
    const { coloring } = data;
    if (coloring && !coloring.groups) {
      this.columns.set(coloring.name.toLowerCase(), (i) => coloring.values[i]);
    }
  }

  /** Places of the rows found, or null where nothing is looked for. */
  find(text) {
    const wanted = text.trim().toLowerCase();
    if (!wanted) return null;
    return this.places(this.compared(wanted) ?? ((i) => this.says(i, wanted)));
  }

  places(test) {
    return Array.from({ length: this.data.count }, (_, i) => i).filter(test);
  }

  compared(wanted) {
    const [, name, sign, value] = COMPARE.exec(wanted) ?? [];
    const column = this.columns.get(name);
    return column && ((i) => TESTS[sign](column(i), Number(value)));
  }

  says(i, wanted) {
    const { index, names, coloring } = this.data;
    if (String(index[i]) === wanted.replace(/^row /, "")) return true;
    if (names?.[i].toLowerCase().includes(wanted)) return true;
    const group = coloring?.groups?.[coloring.values[i]];
    return group !== undefined && (group.toLowerCase() === wanted || (wanted.length > 2
      && group.toLowerCase().includes(wanted)));
  }
}
