/* Sets of rows: inside a lasso, between the ends of a brush, or found by a search. */

/** Whether a place lies inside a polygon, by the crossings of a ray. */
function inside(polygon, x, y) {
  let odd = false;
  for (let k = 0, j = polygon.length - 1; k < polygon.length; j = k++) {
    const [[ax, ay], [bx, by]] = [polygon[k], polygon[j]];
    if (ay > y !== by > y && x < ((bx - ax) * (y - ay)) / (by - ay) + ax) odd = !odd;
  }
  return odd;
}

/** The point chosen, the one under the pointer and those selected, with those who want to know. */
class Selection {
  constructor(count) {
    this.size = count;
    this.place = null;
    this.hovered = null;
    this.sets = new Map();
    this.mask = null;
    this.whenMarked = [];
    this.whenChosen = [];
    this.whenHovered = [];
  }

  choose(place) {
    this.place = place;
    for (const listener of this.whenChosen) listener();
    this.hover(null);
  }

  hover(place) {
    this.hovered = place;
    for (const listener of this.whenHovered) listener();
  }

  /**
   * Set what some part of the page selects, one for every row that it means, or nothing by null.
   * Rows that all parts mean are selected; `by` is the part: "search", "lasso", or a field.
   */
  mark(mask, by) {
    // A search and a lasso stand for each other: the later one counts.
    if (by === "search") this.sets.delete("lasso");
    if (by === "lasso") this.sets.delete("search");
    if (mask) this.sets.set(by, mask);
    else this.sets.delete(by);
    this.join(by);
  }

  clear() {
    this.sets.clear();
    this.join(null);
  }

  join(by) {
    const masks = [...this.sets.values()];
    this.mask = masks.length ? masks[0].slice() : null;
    for (const other of masks.slice(1)) {
      for (let i = 0; i < this.size; i++) this.mask[i] &= other[i];
    }
    this.count = this.size;
    if (this.mask) {
      this.count = 0;
      for (let i = 0; i < this.size; i++) this.count += this.mask[i];
    }
    for (const listener of this.whenMarked) listener(by);
  }

  /** Places of the rows selected, or of all where nothing is. */
  places() {
    const all = Array.from({ length: this.size }, (_, i) => i);
    return this.mask ? all.filter((i) => this.mask[i]) : all;
  }
}

/** What is wrong with a search, for the person who typed it. */
class NotUnderstood extends Error {}

const SIGNS = ["<=", ">=", "!=", "<>", "==", "=", "<", ">"];
const ORDERS = {
  "<": (order) => order < 0, "<=": (order) => order <= 0, ">": (order) => order > 0,
  ">=": (order) => order >= 0, "=": (order) => order === 0, "!=": (order) => order !== 0,
};

/**
 * The rows that a text means.
 *
 *     any  = all { "or" all }
 *     all  = one { "and" one }
 *     one  = "not" one | "(" any ")" | field sign value | field "is" ["not"] "missing" | words
 *
 * A field or a value may stand in quotes. Words alone mean rows whose number, name or group they
 * are; so does a whole text that is part of a name or a group as it stands.
 */
class Search {
  constructor(data, fields) {
    this.data = data;
    this.fields = new Map(fields.all.map((field) => [field.name.toLowerCase(), field]));
    if (data.errors && !this.fields.has("error")) this.fields.set("error", fields.errors[0]);
    // The longest first: of "width" and "width of leaf" the latter is meant where it stands.
    this.names = [...this.fields.keys()].filter((name) => name).sort((a, b) => b.length - a.length);
    this.groups = fields.columns.filter((field) => field.kind === "group");
  }

  /** One for every row found; null where nothing is looked for. Throws NotUnderstood. */
  find(text) {
    const wanted = text.trim();
    if (!wanted) return null;
    const literal = /[<>=()"']|\b(and|or|not|is)\b/i.test(wanted) && this.words(wanted);
    const test = literal && this.anyRow(literal) ? literal : this.parse(wanted);
    const mask = new Uint8Array(this.data.count);
    for (let i = 0; i < mask.length; i++) mask[i] = test(i) ? 1 : 0;
    return mask;
  }

  anyRow(test) {
    for (let i = 0; i < this.data.count; i++) if (test(i)) return true;
    return false;
  }

  parse(text) {
    this.text = text;
    this.at = 0;
    const test = this.any();
    if (this.rest()) throw new NotUnderstood(`There is a ) too many before "${this.rest().slice(1)}".`);
    return test;
  }

  rest() {
    this.at += this.text.slice(this.at).match(/^\s*/)[0].length;
    return this.text.slice(this.at);
  }

  /** Take what a pattern finds at this place; the match or null. */
  take(pattern) {
    const found = pattern.exec(this.rest());
    if (found) this.at += found[0].length;
    return found;
  }

  any() {
    const parts = [this.all()];
    while (this.take(/^or\b/i)) parts.push(this.all());
    return parts.length === 1 ? parts[0] : (i) => parts.some((part) => part(i));
  }

  all() {
    const parts = [this.one()];
    while (this.take(/^and\b/i)) parts.push(this.one());
    return parts.length === 1 ? parts[0] : (i) => parts.every((part) => part(i));
  }

  one() {
    if (this.take(/^not\b/i)) {
      const test = this.one();
      return (i) => !test(i);
    }
    const field = this.field();
    if (field) return this.comparison(field);
    if (this.take(/^\(/)) {
      const test = this.any();
      if (!this.take(/^\)/)) throw new NotUnderstood("A ) is missing.");
      return test;
    }
    const words = this.value("A condition");
    this.refuse(words);
    return this.words(words.text);
  }

  /** A field with what compares it after it, or null. */
  field() {
    const rest = this.rest();
    const compares = (length) => /^\s*(<=|>=|!=|<>|==|=|<|>|is\b)/i.test(rest.slice(length));
    const quoted = /^(["'])(.*?)\1/.exec(rest);
    if (quoted && compares(quoted[0].length)) {
      this.at += quoted[0].length;
      return this.known(quoted[2]);
    }
    const low = rest.toLowerCase();
    const name = this.names.find((one) => low.startsWith(one) && compares(one.length));
    if (name === undefined) return null;
    this.at += name.length;
    return this.fields.get(name);
  }

  known(name) {
    const field = this.fields.get(name.trim().toLowerCase());
    if (field) return field;
    const near = this.names.find((one) => isNear(one, name.trim().toLowerCase()));
    const hint = near ? ` Did you mean ${near}?` : "";
    throw new NotUnderstood(`There is no column "${name.trim()}".${hint}`);
  }

  comparison(field) {
    if (this.take(/^is\b/i)) {
      const not = this.take(/^not\b/i);
      if (!this.take(/^missing\b/i)) throw new NotUnderstood('After "is" comes "missing" or "not missing".');
      return not ? (i) => !field.missing(i) : (i) => field.missing(i);
    }
    const sign = this.take(/^(<=|>=|!=|<>|==|=|<|>)/)[0].replace("<>", "!=").replace("==", "=");
    const value = this.value(`What ${field.name} is compared with`);
    if (!value.quoted && value.text.toLowerCase() === "missing" && ["=", "!="].includes(sign)) {
      return sign === "=" ? (i) => field.missing(i) : (i) => !field.missing(i);
    }
    const order = orderOf(field, value.text);
    const holds = ORDERS[sign];
    return (i) => !field.missing(i) && holds(order(i));
  }

  /** A text in quotes, or all up to the next "and", "or" or closing bracket. */
  value(what) {
    const quote = /^["']/.exec(this.rest());
    if (quote) {
      const found = this.take(/^(["'])(.*?)\1/);
      if (!found) throw new NotUnderstood(`A ${quote[0]} is missing at the end.`);
      return { text: found[2], quoted: true };
    }
    const [text] = this.take(/^(?!(and|or)\b)((?!\s+(and|or)\b|\s*\)).)*/is) ?? [""];
    if (!text.trim()) throw new NotUnderstood(`${what} is missing.`);
    return { text: text.trim(), quoted: false };
  }

  /** Words that hold a sign were meant to compare a column that is not there. */
  refuse({ text, quoted }) {
    const sign = !quoted && SIGNS.map((one) => text.indexOf(one)).filter((at) => at >= 0);
    if (!sign?.length) return;
    const name = text.slice(0, Math.min(...sign));
    if (!name.trim()) throw new NotUnderstood(`There is no column before "${text}".`);
    this.known(name);
  }

  /** Whether a row has this number, or a name or a group with these words. */
  words(text) {
    const wanted = text.toLowerCase();
    const { index, names } = this.data;
    const number = wanted.replace(/^row /, "");
    const meant = (group) => group === wanted || (wanted.length > 2 && group.includes(wanted));
    const codes = this.groups
      .map(({ groups, values }) => ({ values, has: groups.map((one) => meant(one.toLowerCase())) }))
      .filter(({ has }) => has.includes(true));
    return (i) => String(index[i]) === number || Boolean(names?.[i].toLowerCase().includes(wanted))
      || codes.some(({ values, has }) => has[values[i]]);
  }
}

/** How row i compares with a value: below, at or above zero. */
function orderOf(field, text) {
  if (field.kind === "group") {
    const wanted = text.toLowerCase();
    const number = Number(text);
    const orders = field.groups.map((group) => {
      const known = Number(group);
      const numbers = text.trim() && group.trim() && !Number.isNaN(known + number);
      return numbers ? known - number : group.toLowerCase().localeCompare(wanted);
    });
    return (i) => orders[field.values[i]];
  }
  const value = field.kind === "date" ? dateOf(text) : text.trim() ? Number(text) : NaN;
  if (Number.isNaN(value)) {
    const wanted = field.kind === "date" ? "a date such as 2024-05-31" : "a number";
    throw new NotUnderstood(`${field.name} is compared with ${wanted}, and "${text}" is none.`);
  }
  const { values } = field;
  // A fraction is met by what is shown as that: six digits, or as many as single precision has.
  const slack = field.kind === "number" && !Number.isInteger(value) ? 5e-7 * Math.abs(value) : 0;
  return (i) => (Math.abs(values[i] - value) <= slack ? 0 : values[i] - value);
}

/** Milliseconds since 1970 of a date or a date and a time, which are in no zone. */
function dateOf(text) {
  const found = /^\d{4}(-\d\d(-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?)?)?)?)?$/.exec(text.trim());
  if (!found) return NaN;
  const plain = text.trim().replace(" ", "T");
  return Date.parse(plain.includes("T") ? `${plain}Z` : plain);
}

/** Whether one word becomes another by one letter left out, added, changed or exchanged. */
function isNear(a, b) {
  if (Math.abs(a.length - b.length) > 1 || a.length < 3) return a.length > 2 && b.length > 2 && a.startsWith(b);
  let k = 0;
  while (k < a.length && a[k] === b[k]) k++;
  const tails = [[k + 1, k], [k, k + 1], [k + 1, k + 1]];
  return tails.some(([x, y]) => a.slice(x) === b.slice(y))
    || (a[k] === b[k + 1] && a[k + 1] === b[k] && a.slice(k + 2) === b.slice(k + 2));
}
