/* The scatter: draws what the view sees, finds points on the screen, moves when it is told to. */

// Where a frame takes longer than this many milliseconds, moving frames are drawn coarser until
// the view has rested for so long.
const SLOW_FRAME = 12;
const REST = 180;
// Images are so many pixels apart at least.
const IMAGE_SIDE = 34;
// Names of groups on the map at most.
const MOST_LABELS = 40;
// Radius of a ring, and how near rings are that become one with a number.
const RING = 8;
const SAME_RING = 7;

class Scatter {
  constructor(data, canvas, selection) {
    this.data = data;
    this.canvas = canvas;
    this.selection = selection;
    // The pixels are read and written by hand every frame, so they had better not live on a GPU.
    this.context = canvas.getContext("2d", { willReadFrequently: true });
    this.view = new View(data.scores, data.count, data.walk);
    this.hidden = new Set();
    this.withImages = false;
    this.withDensity = data.count > MANY;
    this.trail = null;
    this.outline = null;
    this.withLabels = true;
    this.withRings = true;
    this.stride = 1;
    new ResizeObserver(() => this.resize()).observe(canvas);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.repaint());
    selection.whenChosen.push(() => this.request());
    // A brush moves like a view does.
    selection.whenMarked.push((by) => (by instanceof Field ? this.hurry() : this.request()));
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
    this.groupPlaces = new Map();
    this.onPaint?.(this.paint);
    this.request();
  }

  toggle(code) {
    if (!this.hidden.delete(code)) this.hidden.add(code);
    this.request();
  }

  /** Where a walk goes and stands: scores of its ends and of its place, and an image or null. */
  setTrail(trail) {
    this.trail = trail;
    this.view.setWalked(trail.component);
    this.request();
  }

  /** The line of a lasso that is being drawn, on the page, or null. */
  setOutline(outline) {
    this.outline = outline;
    this.request();
  }

  /** One for every point inside a line on the page. */
  within(outline) {
    const polygon = outline.map(([x, y]) => [x * this.ratio, y * this.ratio]);
    const found = new Uint8Array(this.data.count);
    for (const i of this.index().points) {
      if (inside(polygon, this.view.px[i], this.view.py[i])) found[i] = 1;
    }
    return found;
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
    const { count } = this.data;
    this.radius = (count > 10 * MANY ? 1.5 : count > MANY ? 2.3 : 3.6) * this.ratio;
    this.stamps = SHAPES.map((_, k) => makeStamp(k, this.radius));
    this.request();
  }

  /** Draw before the next frame, once however often it is asked for. */
  request() {
    this.frameAsked ??= requestAnimationFrame(() => {
      this.frameAsked = null;
      this.draw();
    });
  }

  /** Draw because the view moves: at once, if need be coarser and fewer for the time being. */
  hurry() {
    if (this.drawTime > SLOW_FRAME) {
      if (this.ratio > 1) this.resize(1);
      else if (this.data.count > 10 * MANY) {
        this.stride = Math.min(16, Math.ceil((this.stride * this.drawTime) / SLOW_FRAME));
      }
    }
    clearTimeout(this.rest);
    this.rest = setTimeout(() => {
      this.stride = 1;
      if (this.ratio < Math.min(devicePixelRatio || 1, 2)) this.resize();
      else this.request();
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
    this.drawPoints();
    if (this.withImages) this.drawImages();
    if (view.solid) this.drawCube(true);
    else this.drawWhiskers();
    if (this.withLabels) this.drawLabels();
    this.drawRings();
    this.drawTrail();
    this.drawSelected();
    this.drawOutline();
    this.drawTime = performance.now() - began;
    this.onDraw?.();
  }

  /** Points one by one, or their density; those that are not selected are pale. */
  drawPoints() {
    const { context, canvas, view, paint, hidden, ratio, stride } = this;
    const image = context.getImageData(0, 0, canvas.width, canvas.height);
    const [order, px, py, { mask }] = [view.order(), view.px, view.py, this.selection];
    if (this.withDensity) {
      shadeAll(image, order, px, py, paint, hidden, view.frame, ratio, mask, stride);
    } else {
      stampAll(image, order, px, py, paint, this.stamps, hidden, view.frame, mask, stride);
    }
    context.putImageData(image, 0, 0);
  }

  /** How far scores along both axes can be off, where that is known and can be seen. */
  drawWhiskers() {
    const { context, view, ratio } = this;
    const { left, right, top, bottom } = view.frame;
    const cap = 4 * ratio;
    context.lineWidth = 2 * ratio;
    this.whiskers = view.axes.map((k, a) => {
      const error = this.data.scoreErrors[k] ?? 0;
      return Math.abs(view.pixelOf(a, error) - view.pixelOf(a, 0));
    });
    // What the page says of itself, for tests and for those who look into it.
    this.canvas.dataset.whiskers = this.whiskers.map((half) => (half / ratio).toFixed(2)).join(" ");
    const [across, up] = this.whiskers.map((half) => (half < ratio / 2 ? 0 : half));
    if (across) {
      const [x, y] = [Math.max(left + across, right - across - 2 * cap), bottom - 3 * cap];
      this.line(x - across, y, x + across, y, "--mark");
      for (const end of [-across, across]) this.line(x + end, y - cap, x + end, y + cap, "--mark");
    }
    if (up) {
      const [x, y] = [left + 3 * cap, Math.min(bottom - up, top + up + 2 * cap)];
      this.line(x, y - up, x, y + up, "--mark");
      for (const end of [-up, up]) this.line(x - cap, y + end, x + cap, y + end, "--mark");
    }
  }

  /** The names of groups in the middle of their points, the largest first, where there is room. */
  drawLabels() {
    const { context, view, paint, ratio } = this;
    if (!paint.names) return;
    const { left, right, top, bottom } = view.frame;
    const places = view.axes.map((k) => this.groupMiddles(k));
    const taken = [];
    context.font = `600 ${13 * ratio}px system-ui, sans-serif`;
    this.shownLabels = [];
    for (const code of this.largestGroups()) {
      if (this.hidden.has(code)) continue;
      const name = paint.names[code].length > 24 ? `${paint.names[code].slice(0, 23)}\u2026` : paint.names[code];
      const scores = Object.fromEntries(view.axes.map((k, a) => [k, places[a][code]]));
      const [x, y] = view.placeScores(scores);
      const [wide, high] = [context.measureText(name).width / 2 + 3 * ratio, 9 * ratio];
      const crowded = taken.some((other) =>
        Math.abs(other.x - x) < other.wide + wide && Math.abs(other.y - y) < 2 * high);
      if (crowded || x - wide < left || x + wide > right || y - high < top || y > bottom) continue;
      taken.push({ x, y, wide });
      this.shownLabels.push(name);
      this.text(name, x, y + 4 * ratio, "center");
    }
    this.canvas.dataset.labels = JSON.stringify(this.shownLabels);
  }

  /** Codes of the groups that get a label, those of most points first. */
  largestGroups() {
    if (!this.groupPlaces.has("order")) {
      const counts = new Uint32Array(this.paint.colors.length);
      for (const code of this.paint.code) counts[code]++;
      const codes = this.paint.names.map((_, code) => code).filter((code) => counts[code]);
      codes.sort((a, b) => counts[b] - counts[a]);
      this.groupPlaces.set("order", codes.slice(0, MOST_LABELS));
    }
    return this.groupPlaces.get("order");
  }

  /** The median of a component in every group, of a sample where points are many. */
  groupMiddles(k) {
    if (!this.groupPlaces.has(k)) {
      const scores = this.view.component(k);
      const of = this.paint.colors.map(() => []);
      const step = Math.ceil(scores.length / 50_000);
      for (let i = 0; i < scores.length; i += step) of[this.paint.code[i]].push(scores[i]);
      const middles = of.map((some) => some.sort((a, b) => a - b)[some.length >> 1]);
      this.groupPlaces.set(k, middles);
    }
    return this.groupPlaces.get(k);
  }

  showLabels(shown) {
    this.withLabels = shown;
    this.request();
  }

  /** Round scores along both axes: axis, score, pixel. */
  ticks() {
    const { view } = this;
    const { left, right, top, bottom } = view.frame;
    return [[left, right], [bottom, top]].flatMap((pair, a) => {
      const ends = pair.map((at) => view.scoreAt(a, at));
      return roundSteps(...ends, 5).map((score) => [a, score, view.pixelOf(a, score)]);
    });
  }

  drawPlane() {
    const { context, view } = this;
    const { left, right, top, bottom } = view.frame;
    for (const [a, score, at] of this.ticks()) {
      const label = shortNumber(score);
      if (a === 0) this.line(at, top, at, bottom, score === 0 ? "--line" : "--grid");
      else this.line(left, at, right, at, score === 0 ? "--line" : "--grid");
      if (a === 0) this.text(label, at, bottom + 15 * this.ratio, "center");
      else this.text(label, left - 5 * this.ratio, at + 4 * this.ratio, "right");
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

  showDensity(shown) {
    this.withDensity = shown;
    this.request();
  }

  /** The way of a walk, a cross where it stands, and what a row there looks like. */
  drawTrail() {
    if (!this.trail) return;
    const { context, view, ratio } = this;
    const [from, to] = this.trail.ends.map((scores) => view.placeScores(scores));
    const [x, y] = view.placeScores(this.trail.scores);
    const size = 8 * ratio;
    for (const [width, color] of [[4.5, "--panel"], [2, "--mark"]]) {
      context.lineWidth = width * ratio;
      this.line(...from, ...to, color);
      context.lineWidth = (width + 1) * ratio;
      this.line(x - size, y - size, x + size, y + size, color);
      this.line(x - size, y + size, x + size, y - size, color);
    }
    if (this.trail.image) this.drawPreimage(this.trail.image, x, y);
  }

  /** An image beside the cross, inside the axes wherever that stands. */
  drawPreimage(image, x, y) {
    const { context, ratio } = this;
    const { left, right, top } = this.view.frame;
    const scale = (64 * ratio) / Math.max(image.width, image.height);
    const [wide, high] = [image.width * scale, image.height * scale];
    const gap = 12 * ratio;
    const at = [
      Math.max(left, Math.min(x - wide / 2, right - wide)),
      y - gap - high < top ? y + gap : y - gap - high,
    ];
    context.imageSmoothingEnabled = false;
    context.drawImage(image, ...at, wide, high);
    context.lineWidth = 2 * ratio;
    context.strokeStyle = themeColor("--mark");
    context.strokeRect(...at, wide, high);
  }

  drawOutline() {
    if (!this.outline) return;
    const { context, ratio } = this;
    context.beginPath();
    for (const [x, y] of this.outline) context.lineTo(x * ratio, y * ratio);
    context.closePath();
    context.lineWidth = 1.5 * ratio;
    context.setLineDash([5 * ratio, 4 * ratio]);
    context.strokeStyle = themeColor("--ink");
    context.stroke();
    context.setLineDash([]);
  }

  /** Places of rows unlike the others, as x, y and how many lie there. */
  rings() {
    const { view, ratio, paint, hidden } = this;
    const { left, right, top, bottom } = view.frame;
    const rings = [];
    for (const i of this.withRings ? this.data.unlike : []) {
      const [x, y] = [view.px[i], view.py[i]];
      if (hidden.has(paint.code[i]) || x < left || x > right || y < top || y > bottom) continue;
      const near = rings.find((ring) => Math.hypot(ring.x - x, ring.y - y) < SAME_RING * ratio);
      if (near) near.count++;
      else rings.push({ x, y, count: 1 });
    }
    return rings;
  }

  drawRings() {
    const rings = this.rings();
    this.canvas.dataset.rings = JSON.stringify(rings.map(({ count }) => count));
    this.context.font = `600 ${13 * this.ratio}px system-ui, sans-serif`;
    for (const { x, y, count } of rings) {
      this.circle(x, y, RING, 2, "--ink");
      const beside = (RING + 4) * this.ratio;
      if (count > 1) this.text(String(count), x + beside, y - beside / 2, "left");
    }
  }

  showRings(shown) {
    this.withRings = shown;
    this.request();
  }

  drawSelected() {
    const i = this.selection.place;
    if (i !== null) this.circle(this.view.px[i], this.view.py[i], RING + 1, 2.5, "--mark");
  }

  /** A circle with a rim of the ground, so that it is seen over any points. */
  circle(x, y, radius, width, color) {
    const { context, ratio } = this;
    for (const [wide, shade] of [[width + 2.5, "--panel"], [width, color]]) {
      context.beginPath();
      context.arc(x, y, radius * ratio, 0, 2 * Math.PI);
      context.lineWidth = wide * ratio;
      context.strokeStyle = themeColor(shade);
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
