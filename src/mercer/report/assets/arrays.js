/* Arrays as the file holds them: base64 of a zlib stream of little-endian numbers. */

const KINDS = { f8: Float64Array, f4: Float32Array, i4: Int32Array, u1: Uint8Array };

async function unpack(packed) {
  const text = atob(packed.data);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new KINDS[packed.kind](await new Response(stream).arrayBuffer());
}

/** The data of the page with every packed array, at whatever depth, in place of its text. */
async function unpackAll(value) {
  if (value === null || typeof value !== "object") return value;
  if (value.kind in KINDS && "data" in value) return unpack(value);
  if (Array.isArray(value)) return typeof value[0] === "object" ? Promise.all(value.map(unpackAll)) : value;
  const entries = Object.entries(value).map(async ([key, part]) => [key, await unpackAll(part)]);
  return Object.fromEntries(await Promise.all(entries));
}

/** The smallest and largest finite values of some numbers. */
function extent(values) {
  let low = Infinity;
  let high = -Infinity;
  for (const value of values) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return low <= high ? [low, high] : [0, 1];
}

/** A number to six digits, without zeros that say nothing; a whole one with all of its own. */
function shortNumber(value) {
  if (Number.isInteger(value) && Math.abs(value) < 1e15) return String(value);
  return Number.isFinite(value) ? String(Number(value.toPrecision(6))) : "none";
}

/** About `count` multiples of 1, 2 or 5 times a power of ten between two values. */
function roundSteps(low, high, count) {
  const raw = (high - low) / count;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((k) => k * power).find((size) => size >= raw);
  const steps = [];
  for (let k = Math.ceil(low / step); k * step <= high; k++) steps.push(k * step);
  return steps;
}
