/*
 * Density: where points are too many to be told apart, cells of some pixels in the mean color of
 * their points, the denser the stronger.
 */

// From so many points on, density is what is shown first.
const MANY = 5000;
const DENSITY_CELL = 3;
// A single point is seen so strongly, and the densest cell fully.
const FAINTEST = 0.4;
// Of points that are not selected where others are.
const PALE_DENSITY = 0.35;

/** Where points are marked, their density lies over a pale one of the others, without colors. */
function shadeAll(image, order, px, py, paint, hidden, frame, ratio, marked = null, stride = 1) {
  if (marked) {
    const grey = { ...paint, colors: paint.colors.map(() => [150, 150, 150]) };
    shade(image, order, px, py, grey, hidden, frame, ratio, marked, 0, stride);
  }
  shade(image, order, px, py, paint, hidden, frame, ratio, marked, 1, stride);
}

function shade(image, order, px, py, paint, hidden, frame, ratio, marked, layer, stride) {
  const side = Math.max(1, Math.round(DENSITY_CELL * ratio));
  const across = Math.floor((frame.right - frame.left) / side) + 1;
  const down = Math.floor((frame.bottom - frame.top) / side) + 1;
  const counts = new Uint32Array(across * down);
  const sums = [0, 1, 2].map(() => new Float32Array(across * down));
  const [red, green, blue] = [0, 1, 2].map((c) => Float32Array.from(paint.colors, (color) => color[c]));
  const off = hiddenCodes(paint, hidden);
  const { left, right, top, bottom } = frame;
  let most = 1;
  for (let k = 0; k < order.length; k += stride) {
    const i = order[k];
    const code = paint.code[i];
    if (off[code] || (marked && marked[i] !== layer)) continue;
    const x = px[i];
    const y = py[i];
    if (!(x >= left && x <= right && y >= top && y <= bottom)) continue;
    const cell = Math.floor((y - top) / side) * across + Math.floor((x - left) / side);
    if (++counts[cell] > most) most = counts[cell];
    sums[0][cell] += red[code];
    sums[1][cell] += green[code];
    sums[2][cell] += blue[code];
  }
  const strength = marked && layer === 0 ? PALE_DENSITY : 1;
  paintCells(image, counts, sums, across, side, frame, most, strength);
}

/** Cells with points, blended over what is there. */
function paintCells(image, counts, sums, across, side, frame, most, strength) {
  const { data, width } = image;
  for (let cell = 0; cell < counts.length; cell++) {
    const count = counts[cell];
    if (!count) continue;
    const strong = most > 1 ? Math.log(count) / Math.log(most) : 1;
    const alpha = strength * (FAINTEST + (1 - FAINTEST) * strong);
    const left = Math.round(frame.left) + (cell % across) * side;
    const top = Math.round(frame.top) + Math.floor(cell / across) * side;
    for (let y = top; y < Math.min(top + side, frame.bottom); y++) {
      for (let x = left; x < Math.min(left + side, frame.right); x++) {
        const at = 4 * (y * width + x);
        for (let c = 0; c < 3; c++) data[at + c] += alpha * (sums[c][cell] / count - data[at + c]);
      }
    }
  }
}
