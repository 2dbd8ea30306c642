/*
 * From components to pixels. Each axis is first brought to [-1, 1]; two dimensions are then a
 * zoom and a shift, three are turned before that and seen without perspective.
 */

const START_TURN = [0.5, 0.35];

class View {
  constructor(scores, count, walk) {
    this.scores = scores;
    this.count = count;
    this.walk = walk;
    this.px = new Float32Array(count);
    this.py = new Float32Array(count);
    this.depth = new Float32Array(count);
    this.reset();
  }

  /** Choose components; `z` is null for two dimensions. */
  setAxes(x, y, z) {
    this.axes = z === null ? [x, y] : [x, y, z];
    this.units = this.axes.map((k) => this.unit(k));
    this.reset();
  }

  /** The component that is walked along, which needs room for the walk. */
  setWalked(component) {
    this.walked = component;
    if (this.axes) this.units = this.axes.map((k) => this.unit(k));
  }

  get solid() {
    return this.axes.length === 3;
  }

  component(k) {
    return this.scores.subarray(k * this.count, (k + 1) * this.count);
  }

  unit(k) {
    let [low, high] = extent(this.component(k));
    // A walk goes to both sides of the mean, and stays in sight.
    const deviation = this.walk?.deviations[k];
    if (deviation && k === this.walked) {
      low = Math.min(low, this.walk.steps[0] * deviation);
      high = Math.max(high, this.walk.steps.at(-1) * deviation);
    }
    return { middle: (low + high) / 2, half: (high - low) / 2 || 1 };
  }

  reset() {
    this.zoom = 0.92;
    this.shift = [0, 0];
    const [around, over] = START_TURN;
    this.turned = turn(turn([1, 0, 0, 0, 1, 0, 0, 0, 1], around, 0), 0, over);
  }

  /** The part of the canvas, in its pixels, that holds the points. */
  setFrame(frame) {
    this.frame = frame;
    this.middle = [(frame.left + frame.right) / 2, (frame.top + frame.bottom) / 2];
    this.half = [(frame.right - frame.left) / 2, (frame.bottom - frame.top) / 2];
    if (this.axes && this.solid) {
      // A turning cube must not change its shape, and hardly ever leave the frame.
      const side = Math.min(...this.half) * 0.85;
      this.half = [side, side];
    }
  }

  /** Pixels of a place given in unit coordinates. */
  place(u, v, w) {
    const t = this.turned;
    const [x, y] = this.solid
      ? [t[0] * u + t[1] * v + t[2] * w, t[3] * u + t[4] * v + t[5] * w]
      : [u, v];
    return [
      this.middle[0] + (x * this.zoom + this.shift[0]) * this.half[0],
      this.middle[1] - (y * this.zoom + this.shift[1]) * this.half[1],
    ];
  }

  /** Pixels of a row of scores, all components. */
  placeScores(row) {
    const [u, v, w] = this.axes.map((k, a) => (row[k] - this.units[a].middle) / this.units[a].half);
    return this.place(u, v, w);
  }

  /** The score along axis a, 0 or 1, at a pixel; two dimensions only. */
  scoreAt(a, pixel) {
    const sign = a === 0 ? 1 : -1;
    const unit = (sign * (pixel - this.middle[a]) / this.half[a] - this.shift[a]) / this.zoom;
    return this.units[a].middle + unit * this.units[a].half;
  }

  pixelOf(a, score) {
    const unit = (score - this.units[a].middle) / this.units[a].half;
    const sign = a === 0 ? 1 : -1;
    return this.middle[a] + sign * (unit * this.zoom + this.shift[a]) * this.half[a];
  }

  /** Find the pixels of all points, and their depth. */
  project() {
    // One affine map from scores to pixels, so that the loop does the least.
    const t = this.solid ? this.turned : [1, 0, 0, 0, 1, 0, 0, 0, 1];
    const columns = this.axes.map((k) => this.component(k));
    const [x, y] = columns;
    const z = columns[2] ?? x;
    const rows = [0, 3, 6].map((at) => this.units.map((unit, a) => t[at + a] / unit.half));
    const offsets = rows.map((row) => -row.reduce((sum, c, a) => sum + c * this.units[a].middle, 0));
    const gain = [this.zoom * this.half[0], -this.zoom * this.half[1]];
    const base = [
      this.middle[0] + this.shift[0] * this.half[0],
      this.middle[1] - this.shift[1] * this.half[1],
    ];
    const [[ax, ay, az = 0], [bx, by, bz = 0], [cx, cy, cz = 0]] = rows;
    for (let i = 0; i < this.count; i++) {
      this.px[i] = base[0] + gain[0] * (ax * x[i] + ay * y[i] + az * z[i] + offsets[0]);
      this.py[i] = base[1] + gain[1] * (bx * x[i] + by * y[i] + bz * z[i] + offsets[1]);
      this.depth[i] = cx * x[i] + cy * y[i] + cz * z[i] + offsets[2];
    }
  }

  /** Points from the farthest to the nearest, to 512 steps of depth. */
  order() {
    if (!this.solid) return this.asGiven ??= Uint32Array.from({ length: this.count }, (_, i) => i);
    return countingSort(this.depth, -1.8, 1.8, 512);
  }

  /** Zoom by a factor, a pixel staying where it is. */
  zoomAt(factor, x, y) {
    const zoom = Math.min(200, Math.max(0.2, this.zoom * factor));
    const at = [(x - this.middle[0]) / this.half[0], (this.middle[1] - y) / this.half[1]];
    for (const a of [0, 1]) this.shift[a] = at[a] - (at[a] - this.shift[a]) * (zoom / this.zoom);
    this.zoom = zoom;
  }

  /** Move by pixels: a shift of the plane, or a turn of the cube. */
  drag(dx, dy) {
    if (this.solid) {
      this.turned = turn(this.turned, dx * 0.008, dy * 0.008);
    } else {
      this.shift[0] += dx / this.half[0];
      this.shift[1] -= dy / this.half[1];
    }
  }
}

/** A rotation followed by turns about the upright and the level axis of the screen. */
function turn(t, around, over) {
  const [c, s] = [Math.cos(around), Math.sin(around)];
  const [d, e] = [Math.cos(over), Math.sin(over)];
  const first = product([c, 0, s, 0, 1, 0, -s, 0, c], t);
  return product([1, 0, 0, 0, d, -e, 0, e, d], first);
}

function product(a, b) {
  return a.map((_, k) => {
    const [i, j] = [3 * Math.floor(k / 3), k % 3];
    return a[i] * b[j] + a[i + 1] * b[3 + j] + a[i + 2] * b[6 + j];
  });
}

/** Indices in the order of their values, to so many steps between low and high. */
function countingSort(values, low, high, steps) {
  const bin = (value) => {
    const at = Math.floor(((value - low) / (high - low)) * steps);
    return Math.max(0, Math.min(steps - 1, at));
  };
  const starts = new Uint32Array(steps + 1);
  for (const value of values) starts[bin(value) + 1]++;
  for (let k = 0; k < steps; k++) starts[k + 1] += starts[k];
  const order = new Uint32Array(values.length);
  for (let i = 0; i < values.length; i++) order[starts[bin(values[i])]++] = i;
  return order;
}
