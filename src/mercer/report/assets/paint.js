/*
 * What a point looks like: a color and a shape, so that groups are told apart in grey as well.
 *
 * A stamp is a shape as a list of pixels and their coverage. Points are blended into the pixels
 * of the canvas by hand: for 20,000 of them that is several times faster than paths.
 */

// Those of plots (plot/axes.py), for paper and night alike.
const GROUP_COLORS = [
  "#273bc4", "#d88914", "#008962", "#d83b14", "#b176ff", "#629db1", "#892700", "#62d8b1",
  "#623b76", "#d8c400", "#8962b1", "#b1b1ff",
];
const PLAIN_COLOR = { light: "#0072b2", dark: "#4db1f0" };
// Nine colors of viridis. Its pale end would vanish on paper and its dark end at night.
const SCALE = [
  "#440154", "#472d7b", "#3b528b", "#2c728e", "#21918c", "#28ae80", "#5ec962", "#addc30", "#fde725",
];
const SCALE_RANGE = { light: [0, 0.86], dark: [0.3, 1] };
const SCALE_STEPS = 256;
const OPACITY = 0.8;
// Darker colors than this are less than three times as bright as the ground at night.
const DARKEST = 0.16;
// As many groups as colors and shapes tell apart; the smallest of more share the last place.
const MOST_GROUPS = 60;
// Share of that for points that are not selected where others are.
const PALE = 0.2;

const SHAPES = [
  (x, y) => x * x + y * y < 1,
  (x, y) => Math.max(Math.abs(x), Math.abs(y)) < 0.86,
  (x, y) => y < 0.8 && y > 2 * Math.abs(x) - 1.1,
  (x, y) => Math.abs(x) + Math.abs(y) < 1.15,
  (x, y) => Math.min(Math.abs(x), Math.abs(y)) < 0.34 && Math.max(Math.abs(x), Math.abs(y)) < 1.1,
  (x, y) => y > -0.8 && y < 1.1 - 2 * Math.abs(x),
  (x, y) => x * x + y * y < 1.2 && x * x + y * y > 0.36,
  (x, y) => Math.abs(Math.abs(x) - Math.abs(y)) < 0.42 && Math.max(Math.abs(x), Math.abs(y)) < 1,
  (x, y) => Math.abs(y) < 0.45 && Math.abs(x) < 1.2,
  (x, y) => Math.abs(x) < 0.45 && Math.abs(y) < 1.2,
];

function darkMode() {
  return matchMedia("(prefers-color-scheme: dark)").matches;
}

function themeColor(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function rgb(hex) {
  return [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
}

function mix(a, b, share) {
  return a.map((value, k) => Math.round(value + share * (b[k] - value)));
}

function scaleColor(share, theme) {
  const [low, high] = SCALE_RANGE[theme];
  const at = (low + share * (high - low)) * (SCALE.length - 1);
  const k = Math.min(Math.floor(at), SCALE.length - 2);
  return mix(rgb(SCALE[k]), rgb(SCALE[k + 1]), at - k);
}

/** Pixels of a shape of some radius: offsets from its center and coverage. */
function makeStamp(shape, radius) {
  const dx = [];
  const dy = [];
  const alpha = [];
  const reach = Math.ceil(radius * 1.25);
  for (let y = -reach; y <= reach; y++) {
    for (let x = -reach; x <= reach; x++) {
      const cover = coverage(SHAPES[shape], x, y, radius);
      if (cover === 0) continue;
      dx.push(x);
      dy.push(y);
      alpha.push(Math.round(256 * cover * OPACITY));
    }
  }
  return { dx: Int16Array.from(dx), dy: Int16Array.from(dy), alpha: Int32Array.from(alpha) };
}

/** The share of a pixel that lies inside, by sixteen samples. */
function coverage(inside, x, y, radius) {
  let hits = 0;
  for (let i = 0; i < 4; i++) {
    for (let j = 0; j < 4; j++) {
      if (inside((x + (i - 1.5) / 4) / radius, (y + (j - 1.5) / 4) / radius)) hits++;
    }
  }
  return hits / 16;
}

/**
 * How every point is painted: `code[i]` chooses among `colors` and `shapes`; groups have `names`.
 * The last code is that of points without a value, which are grey rings.
 */
function makePaint(field, count) {
  const theme = darkMode() ? "dark" : "light";
  const missing = darkMode() ? [130, 130, 130] : [150, 150, 150];
  const { code, colors, shapes, names } = field?.kind === "group"
    ? groupPaint(field, theme)
    : field
      ? scalePaint(field, theme)
      : plainPaint(count, theme);
  return { code, colors: [...colors, missing], shapes: [...shapes, 6], names };
}

/** Which of at most so many names each group has: those of few rows share the last one. */
function groupRanks({ groups, values }, most) {
  if (groups.length <= most) return { of: groups.map((_, k) => k), names: [...groups] };
  const counts = new Uint32Array(groups.length);
  for (const value of values) if (value >= 0) counts[value]++;
  const order = [...groups.keys()].sort((a, b) => counts[b] - counts[a] || a - b);
  const of = new Array(groups.length).fill(most - 1);
  order.slice(0, most - 1).forEach((group, rank) => { of[group] = rank; });
  const left = groups.length - most + 1;
  return { of, names: [...order.slice(0, most - 1).map((k) => groups[k]), `${left} other groups`] };
}

/** A color of a group; at night dark ones are mixed with white until they stand out. */
function groupColor(k, theme) {
  let color = rgb(GROUP_COLORS[k % GROUP_COLORS.length]);
  while (theme === "dark" && brightness(color) < DARKEST) color = mix(color, [255, 255, 255], 0.1);
  return color;
}

/** Relative luminance, from 0 for black to 1 for white. */
function brightness(color) {
  const [r, g, b] = color.map((value) => (value / 255) ** 2.2);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

function plainPaint(count, theme) {
  return { code: new Uint16Array(count), colors: [rgb(PLAIN_COLOR[theme])], shapes: [0] };
}

function groupPaint(field, theme) {
  const { of, names } = groupRanks(field, MOST_GROUPS);
  const rest = field.groups.length > MOST_GROUPS ? MOST_GROUPS - 1 : -1;
  const grey = theme === "dark" ? [100, 100, 100] : [185, 185, 185];
  return {
    code: Uint16Array.from(field.values, (value) => (value < 0 ? names.length : of[value])),
    colors: names.map((_, k) => (k === rest ? grey : groupColor(k, theme))),
    shapes: names.map((_, k) => (k === rest ? 0 : k % SHAPES.length)),
    names,
  };
}

function scalePaint({ values }, theme) {
  const [low, high] = extent(values);
  const steps = SCALE_STEPS - 1;
  const step = (value) => (high > low ? Math.round((steps * (value - low)) / (high - low)) : steps >> 1);
  const colors = Array.from({ length: SCALE_STEPS }, (_, k) => scaleColor(k / steps, theme));
  return {
    code: Uint16Array.from(values, (value) => (Number.isNaN(value) ? SCALE_STEPS : step(value))),
    colors,
    shapes: colors.map(() => 0),
  };
}

/** One for every code that is not shown. */
function hiddenCodes(paint, hidden) {
  return Uint8Array.from(paint.colors, (_, code) => (hidden.has(code) ? 1 : 0));
}

/**
 * Blend stamps at the given places into pixels; places outside the frame are left out, and the
 * frame lies so far inside the image that no stamp reaches over its edge. Where some points are
 * marked, the others are pale and beneath them. Of many points each `stride`-th is drawn.
 */
function stampAll(image, order, px, py, paint, stamps, hidden, frame, marked = null, stride = 1) {
  const pixels = new Uint32Array(image.data.buffer);
  const { width } = image;
  const off = hiddenCodes(paint, hidden);
  const offsets = stamps.map(({ dx, dy }) => Int32Array.from(dx, (x, p) => dy[p] * width + x));
  const pale = marked ? stamps.map(({ alpha }) => alpha.map((a) => a * PALE)) : null;
  for (const layer of marked ? [0, 1] : [null]) {
    for (let k = 0; k < order.length; k += stride) {
      const i = order[k];
      if (layer !== null && marked[i] !== layer) continue;
      const code = paint.code[i];
      const x = Math.round(px[i]);
      const y = Math.round(py[i]);
      if (!(x >= frame.left && x <= frame.right && y >= frame.top && y <= frame.bottom)) continue;
      if (off[code]) continue;
      const shape = paint.shapes[code];
      const alpha = layer === 0 ? pale[shape] : stamps[shape].alpha;
      blend(pixels, y * width + x, paint.colors[code], offsets[shape], alpha);
    }
  }
}

/** Blend a color into pixels of 8 bits red, green, blue and opaque; alpha counts to 256. */
function blend(pixels, center, [red, green, blue], offsets, alpha) {
  for (let p = 0; p < offsets.length; p++) {
    const at = center + offsets[p];
    const old = pixels[at];
    const a = alpha[p];
    const r = old & 255;
    const g = (old >> 8) & 255;
    const b = (old >> 16) & 255;
    pixels[at] =
      0xff000000 |
      ((b + (((blue - b) * a) >> 8)) << 16) |
      ((g + (((green - g) * a) >> 8)) << 8) |
      (r + (((red - r) * a) >> 8));
  }
}
