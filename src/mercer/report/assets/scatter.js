/* The scatter: draws what the view sees, finds points on the screen, moves when it is told to. */

// Where a frame takes longer than this many milliseconds, moving frames are drawn coarser until
// the view has rested for so long.
const SLOW_FRAME = 12;
const REST = 180;
// Images are so many pixels apart at least.
const IMAGE_SIDE = 34;

class Scatter {
  constructor(data, canvas, selection) {
    this.data = data;
    this.canvas = canvas;
    this.selection = selection;
    // The pixels are read and written by hand every frame, so they had better not live on a GPU.
    this.context = canvas.getContext("2d", { willReadFrequently: true });
    this.view = new View(data.scores, data.count);
    this.hidden = new Set();
    this.withImages = false;
    this.marker = null;
    new ResizeObserver(() => this.resize()).observe(canvas);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.repaint());
    selection.whenChosen.push(() => this.request());
  }

  setAxes(x, y, z) {
    this.view.setAxes(x, y, z);
    this.resize();
  }

  setColor(source) {
    this.source = source;
    this.hidden.clear();
    this.repaint();
  }

  repaint() {
    this.paint = makePaint(this.source, this.data.count);
    this.onPaint?.(this.paint);
    this.request();
  }

  toggle(code) {
    if (!this.hidden.delete(code)) this.hidden.add(code);
    this.request();
  }

  /** Mark a place given by scores, or none. */
  setMarker(scores) {
    this.marker = scores;
    this.request();
  }

  resize(finest = 2) {
    const box = this.canvas.getBoundingClientRect();
    if (!box.width || !this.view.axes) return;
    // More than two pixels a side of a point cost time that no eye sees.
    this.ratio = Math.min(devicePixelRatio || 1, finest);
    this.canvas.width = Math.round(box.width * this.ratio);
    this.canvas.height = Math.round(box.height * this.ratio);
    const [left, bottom, edge] = this.view.solid ? [8, 8, 8] : [56, 44, 10];
    this.view.setFrame({
      left: left * this.ratio,
      right: this.canvas.width - edge * this.ratio,
      top: edge * this.ratio,
      bottom: this.canvas.height - bottom * this.ratio,
    });
    const radius = (this.data.count > 5000 ? 2.3 : 3.6) * this.ratio;
    this.stamps = SHAPES.map((_, k) => makeStamp(k, radius));
    this.request();
  }

  /** Draw before the next frame, once however often it is asked for. */
  request() {
    this.frameAsked ??= requestAnimationFrame(() => {
      this.frameAsked = null;
      this.draw();
    });
  }

  /** Draw because the view moves: at once, if need be coarser for the time being. */
  hurry() {
    if (this.drawTime > SLOW_FRAME && this.ratio > 1) this.resize(1);
    clearTimeout(this.rest);
    this.rest = setTimeout(() => {
      if (this.ratio < Math.min(devicePixelRatio || 1, 2)) this.resize();
    }, REST);
    this.request();
  }

  draw() {
    if (!this.stamps || !this.paint) return;
    const began = performance.now();
    const { context, canvas, view } = this;
    view.project();
    this.grid = null;
    context.fillStyle = themeColor("--panel");
    context.fillRect(0, 0, canvas.width, canvas.height);
    context.font = `${13 * this.ratio}px system-ui, sans-serif`;
    context.lineWidth = this.ratio;
    if (view.solid) this.drawCube(false);
    else this.drawPlane();
    const image = context.getImageData(0, 0, canvas.width, canvas.height);
    stampAll(image, view.order(), view.px, view.py, this.paint, this.stamps, this.hidden, view.frame);
    context.putImageData(image, 0, 0);
    if (this.withImages) this.drawImages();
    if (view.solid) this.drawCube(true);
    this.drawMarker();
    this.drawSelected();
    this.drawTime = performance.now() - began;
    this.onDraw?.();
  }

  drawPlane() {
    const { context, view } = this;
    const { left, right, top, bottom } = view.frame;
    const ends = [[left, right], [bottom, top]].map((pair, a) => pair.map((at) => view.scoreAt(a, at)));
    for (const a of [0, 1]) {
      for (const score of roundSteps(...ends[a], 5)) {
        const at = view.pixelOf(a, score);
        const label = shortNumber(score);
        if (a === 0) this.line(at, top, at, bottom, score === 0 ? "--line" : "--grid");
        else this.line(left, at, right, at, score === 0 ? "--line" : "--grid");
        if (a === 0) this.text(label, at, bottom + 15 * this.ratio, "center");
        else this.text(label, left - 5 * this.ratio, at + 4 * this.ratio, "right");
      }
    }
    this.text(`component ${view.axes[0] + 1}`, (left + right) / 2, bottom + 34 * this.ratio, "center");
    context.save();
    context.translate(13 * this.ratio, (top + bottom) / 2);
    context.rotate(-Math.PI / 2);
    this.text(`component ${view.axes[1] + 1}`, 0, 0, "center");
    context.restore();
  }

  /** Axes through the middle of the cube: lines beneath the points, or names above them. */
  drawCube(names) {
    const { view } = this;
    view.axes.forEach((k, a) => {
      const corner = (end) => view.place(...[0, 1, 2].map((b) => (a === b ? end : 0)));
      const [from, to] = [corner(-1.1), corner(1.1)];
      if (names) this.text(`component ${k + 1}`, ...to, "center");
      else this.line(...from, ...to, "--line");
    });
  }

  /** Images of some points, those in front first, where there is room. */
  drawImages() {
    const { view, context } = this;
    const { left, right, top, bottom } = view.frame;
    const side = IMAGE_SIDE * this.ratio;
    const across = Math.ceil(this.canvas.width / side);
    const placed = new Map();
    const crowded = (x, y, cell) =>
      [-1, 0, 1].some((line) => [-1, 0, 1].some((column) => {
        const other = placed.get(cell + line * across + column);
        return other && Math.abs(other[0] - x) < side && Math.abs(other[1] - y) < side;
      }));
    const order = view.order();
    for (let k = order.length - 1; k >= 0; k--) {
      const i = order[k];
      const [x, y] = [view.px[i], view.py[i]];
      const cell = Math.floor(y / side) * across + Math.floor(x / side);
      if (x < left || x > right || y < top || y > bottom) continue;
      if (this.hidden.has(this.paint.code[i]) || crowded(x, y, cell)) continue;
      placed.set(cell, [x, y]);
      const image = rowImage(this.data.images, i);
      const scale = (0.92 * side) / Math.max(image.width, image.height);
      const [wide, high] = [image.width * scale, image.height * scale];
      context.drawImage(image, x - wide / 2, y - high / 2, wide, high);
    }
  }

  showImages(shown) {
    this.withImages = shown;
    this.request();
  }

  drawMarker() {
    if (!this.marker) return;
    const [x, y] = this.view.placeScores(this.marker);
    const size = 9 * this.ratio;
    this.context.lineWidth = 3 * this.ratio;
    this.line(x - size, y - size, x + size, y + size, "--mark");
    this.line(x - size, y + size, x + size, y - size, "--mark");
  }

  drawSelected() {
    const i = this.selection.place;
    if (i === null) return;
    const { context, view } = this;
    for (const [radius, width, color] of [[9, 5, "--panel"], [9, 2.5, "--mark"]]) {
      context.beginPath();
      context.arc(view.px[i], view.py[i], radius * this.ratio, 0, 2 * Math.PI);
      context.lineWidth = width * this.ratio;
      context.strokeStyle = themeColor(color);
      context.stroke();
    }
  }

  line(x1, y1, x2, y2, color) {
    this.context.strokeStyle = themeColor(color);
    this.context.beginPath();
    this.context.moveTo(x1, y1);
    this.context.lineTo(x2, y2);
    this.context.stroke();
  }

  text(text, x, y, align) {
    const { context } = this;
    context.fillStyle = themeColor("--ink");
    context.strokeStyle = themeColor("--panel");
    context.textAlign = align;
    // A rim of the ground keeps letters readable over points.
    context.lineWidth = 4 * this.ratio;
    context.strokeText(text, x, y);
    context.lineWidth = this.ratio;
    this.context.fillText(text, x, y);
  }

  /** The index of points on the screen, made when it is first asked for after a change. */
  index() {
    const shown = (i) => !this.hidden.has(this.paint.code[i]);
    this.grid ??= new Grid(this.view.px, this.view.py, shown, this.view.frame);
    return this.grid;
  }

  /** The point nearest to a place on the page within some reach, or null. */
  find([x, y], reach) {
    return this.index().nearest(x * this.ratio, y * this.ratio, reach * this.ratio);
  }

  /** Bring a point into sight, if the view has been moved away from it. */
  reveal(i) {
    const { left, right, top, bottom } = this.view.frame;
    const [x, y] = [this.view.px[i], this.view.py[i]];
    if (x < left || x > right || y < top || y > bottom) this.reset();
    this.canvas.scrollIntoView({ block: "nearest" });
  }

  /** Where a point lies, in the page's own pixels from the canvas's corner. */
  placeOf(i) {
    return [this.view.px[i] / this.ratio, this.view.py[i] / this.ratio];
  }

  zoom(factor, [x, y] = this.view.middle.map((at) => at / this.ratio)) {
    this.view.zoomAt(factor, x * this.ratio, y * this.ratio);
    this.hurry();
  }

  drag(dx, dy) {
    // A turn goes by what the hand moved, a shift by pixels of the canvas.
    const unit = this.view.solid ? 1 : this.ratio;
    this.view.drag(dx * unit, dy * unit);
    this.hurry();
  }

  reset() {
    this.view.reset();
    this.request();
  }

  /** Choose the next point in a direction, or the one nearest to the middle to begin with. */
  step(dx, dy) {
    const index = this.index();
    const from = this.selection.place;
    const next =
      from === null
        ? index.nearest(...this.view.middle, Infinity)
        : index.neighbor(from, dx, dy);
    if (next !== null) this.selection.choose(next);
  }
}
