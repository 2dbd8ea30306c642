/* Where points lie on the screen: cells of some pixels each, made anew when the view moves. */

const CELL = 24;

class Grid {
  constructor(px, py, shown, frame) {
    this.px = px;
    this.py = py;
    this.left = frame.left;
    this.top = frame.top;
    this.columns = Math.max(1, Math.ceil((frame.right - frame.left) / CELL) + 1);
    this.lines = Math.max(1, Math.ceil((frame.bottom - frame.top) / CELL) + 1);
    const inside = (i) =>
      px[i] >= frame.left && px[i] <= frame.right && py[i] >= frame.top && py[i] <= frame.bottom;
    const cells = this.columns * this.lines;
    this.starts = new Uint32Array(cells + 1);
    const kept = [];
    for (let i = 0; i < px.length; i++) {
      if (!inside(i) || !shown(i)) continue;
      kept.push(i);
      this.starts[this.cell(px[i], py[i]) + 1]++;
    }
    for (let c = 0; c < cells; c++) this.starts[c + 1] += this.starts[c];
    const next = this.starts.slice();
    this.points = new Uint32Array(kept.length);
    for (const i of kept) this.points[next[this.cell(px[i], py[i])]++] = i;
  }

  cell(x, y) {
    return Math.floor((y - this.top) / CELL) * this.columns + Math.floor((x - this.left) / CELL);
  }

  /** The point nearest to a pixel within some reach, or null. */
  nearest(x, y, reach) {
    let best = null;
    let least = reach * reach;
    const across = [x - reach, x + reach].map((at) => Math.floor((at - this.left) / CELL));
    const down = [y - reach, y + reach].map((at) => Math.floor((at - this.top) / CELL));
    for (let line = Math.max(0, down[0]); line <= Math.min(this.lines - 1, down[1]); line++) {
      const from = this.starts[line * this.columns + Math.max(0, across[0])];
      const to = this.starts[line * this.columns + Math.min(this.columns - 1, across[1]) + 1];
      for (let k = from; k < to; k++) {
        const i = this.points[k];
        const distance = (this.px[i] - x) ** 2 + (this.py[i] - y) ** 2;
        if (distance <= least) [best, least] = [i, distance];
      }
    }
    return best;
  }

  /** The next point from point `i` in a direction, within 45 degrees of it; null at the edge. */
  neighbor(i, dx, dy) {
    let best = null;
    let least = Infinity;
    for (const j of this.points) {
      const [x, y] = [this.px[j] - this.px[i], this.py[j] - this.py[i]];
      const ahead = x * dx + y * dy;
      const aside = Math.abs(x * dy) + Math.abs(y * dx);
      if (ahead < 0.5 || aside > ahead) continue;
      const cost = ahead + 2 * aside;
      if (cost < least) [best, least] = [j, cost];
    }
    return best;
  }
}
