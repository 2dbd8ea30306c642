/* Hands and keys on the scatter: hover, tap, drag, pinch, wheel, arrows. */

// How far from a point a mouse and a finger may be to mean it, and how far a tap may slip.
const MOUSE_REACH = 14;
const TOUCH_REACH = 26;
const TAP = 6;
const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
const ZOOM_KEYS = { "+": 1.25, "=": 1.25, "-": 0.8 };

class Gestures {
  constructor(scatter, selection) {
    this.scatter = scatter;
    this.selection = selection;
    this.canvas = scatter.canvas;
    this.pointers = new Map();
    this.lassoing = false;
    this.outline = null;
    const listen = (name, act, options) => this.canvas.addEventListener(name, act, options);
    listen("pointerdown", (event) => this.press(event));
    listen("pointermove", (event) => this.move(event));
    listen("pointerup", (event) => this.lift(event));
    listen("pointercancel", (event) => this.cancel(event));
    listen("pointerleave", () => selection.hover(null));
    listen("dblclick", () => scatter.reset());
    listen("keydown", (event) => this.key(event));
    listen("wheel", (event) => this.wheel(event), { passive: false });
  }

  /** Where a pointer is, in the page's own pixels from the canvas's corner. */
  at(event) {
    const box = this.canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }

  find(event) {
    const reach = event.pointerType === "touch" ? TOUCH_REACH : MOUSE_REACH;
    return this.scatter.find(this.at(event), reach);
  }

  press(event) {
    this.canvas.setPointerCapture(event.pointerId);
    this.start = this.at(event);
    this.pointers.set(event.pointerId, this.start);
    this.moved = this.pointers.size > 1;
    this.outline = (this.lassoing || event.shiftKey) && !this.moved ? [this.start] : null;
  }

  cancel(event) {
    this.pointers.delete(event.pointerId);
    this.outline = null;
    this.scatter.setOutline(null);
  }

  /** Whether a drag draws a line around points; on touch screens it then does not scroll. */
  setLasso(on) {
    this.lassoing = on;
    this.canvas.style.touchAction = on ? "none" : "";
  }

  move(event) {
    const before = this.pointers.get(event.pointerId);
    if (!before) {
      if (event.pointerType !== "touch") this.selection.hover(this.find(event));
      return;
    }
    const now = this.at(event);
    this.moved ||= distance(now, this.start) > TAP;
    if (!this.moved) return;
    if (this.outline) this.draw(now);
    else if (this.pointers.size > 1) this.pinch(event.pointerId, before, now);
    else this.scatter.drag(now[0] - before[0], now[1] - before[1]);
    this.pointers.set(event.pointerId, now);
    this.selection.hover(null);
  }

  /** Two fingers: zoom about the one that rests. */
  pinch(id, before, now) {
    const other = [...this.pointers].find(([key]) => key !== id)[1];
    this.scatter.zoom(distance(now, other) / (distance(before, other) || 1), other);
  }

  /** One more corner of the lasso. */
  draw(now) {
    this.outline.push(now);
    this.scatter.setOutline(this.outline);
  }

  lift(event) {
    const held = this.pointers.delete(event.pointerId);
    const outline = this.moved ? this.outline : null;
    this.outline = null;
    if (outline) {
      this.scatter.setOutline(null);
      this.selection.mark(this.scatter.within(outline), "lasso");
      return;
    }
    if (held && !this.moved) this.selection.choose(this.find(event));
  }

  /** The page scrolls under the wheel unless the plot was asked for by focus or by Ctrl. */
  wheel(event) {
    if (document.activeElement !== this.canvas && !event.ctrlKey) return;
    event.preventDefault();
    this.scatter.zoom(Math.exp(-event.deltaY * 0.0015), this.at(event));
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key in ARROWS) this.arrow(ARROWS[event.key], event.shiftKey);
    else if (event.key in ZOOM_KEYS) this.scatter.zoom(ZOOM_KEYS[event.key]);
    else if (event.key === "0") this.scatter.reset();
    else if (event.key === "Escape") this.escape();
    else return;
    event.preventDefault();
  }

  escape() {
    this.selection.choose(null);
    this.selection.clear();
  }

  arrow([dx, dy], shift) {
    if (shift) this.scatter.drag(20 * dx, 20 * dy);
    else this.scatter.step(dx, dy);
  }
}

function distance(a, b) {
  return Math.hypot(a[0] - b[0], a[1] - b[1]);
}
