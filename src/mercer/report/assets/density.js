/*
 * Density: where points are too many to be told apart, cells of some pixels in the mean color of
 * their points, the denser the stronger.
 */

// From so many points on, density is what is shown first.
const MANY = 5000;
const DENSITY_CELL = 3;
// A single point is seen so strongly, and the densest cell fully.
const FAINTEST = 0.4;

function shadeAll(image, order, px, py, paint, hidden, frame, ratio) {
  const side = Math.max(1, Math.round(DENSITY_CELL * ratio));
  const across = Math.floor((frame.right - frame.left) / side) + 1;
  const down = Math.floor((frame.bottom - frame.top) / side) + 1;
  const counts = new Uint32Array(across * down);
  const sums = [0, 1, 2].map(() => new Float64Array(across * down));
  let most = 1;
  for (let k = 0; k < order.length; k++) {
    const i = order[k];
    const code = paint.code[i];
    if (hidden.has(code)) continue;
    const [x, y] = [px[i], py[i]];
    if (!(x >= frame.left && x <= frame.right && y >= frame.top && y <= frame.bottom)) continue;
    const cell = Math.floor((y - frame.top) / side) * across + Math.floor((x - frame.left) / side);
    const color = paint.colors[code];
    most = Math.max(most, ++counts[cell]);
    for (let c = 0; c < 3; c++) sums[c][cell] += color[c];
  }
  paintCells(image, counts, sums, across, side, frame, most);
}

/** Cells with points, blended over what is there. */
function paintCells(image, counts, sums, across, side, frame, most) {
  const { data, width } = image;
  for (let cell = 0; cell < counts.length; cell++) {
    const count = counts[cell];
    if (!count) continue;
    const strong = most > 1 ? Math.log(count) / Math.log(most) : 1;
    const alpha = FAINTEST + (1 - FAINTEST) * strong;
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
