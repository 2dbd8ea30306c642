/* The page comes to life: arrays are unpacked, parts are made and told of each other. */

const byId = (id) => document.getElementById(id);

function fillSelect(select, options) {
  select.replaceChildren(...options.map(([value, text]) => {
    const option = element("option", text);
    option.value = value;
    return option;
  }));
}

function connectAxes(data, scatter) {
  const selects = ["x", "y", "z"].map((name) => byId(`axis-${name}`));
  const components = Array.from({ length: data.components }, (_, k) => [k, `component ${k + 1}`]);
  const choices = [components, components, [["", "none"], ...components]];
  selects.forEach((select, a) => fillSelect(select, choices[a]));
  selects[1].value = Math.min(1, data.components - 1);
  const change = () => {
    const [x, y, z] = selects.map((select) => (select.value === "" ? null : Number(select.value)));
    scatter.setAxes(x, y, z);
    scatter.request();
    const names = [x, y, z].filter((k) => k !== null).map((k) => `component ${k + 1}`);
    const label = `Scatter of ${data.count} rows by ${names.join(", ")}`;
    scatter.canvas.setAttribute("aria-label", label);
  };
  for (const select of selects) select.addEventListener("change", change);
  change();
}

function connectColors(data, fields, scatter) {
  const sources = [...fields.columns, ...fields.errors];
  const select = byId("color");
  fillSelect(select, [["", "nothing"], ...sources.map(({ name }, k) => [k, name])]);
  select.value = data.colored ?? "";
  const change = () => {
    const field = sources[select.value] ?? null;
    byId("labels-choice").hidden = field?.kind !== "group";
    scatter.setColor(field);
  };
  select.addEventListener("change", change);
  byId("labels").addEventListener("change", (event) => scatter.showLabels(event.target.checked));
  scatter.onPaint = (paint) => showLegend(byId("legend"), scatter, paint);
  change();
}

/** Groups as buttons that hide and show them, or the ends of a scale. */
function showLegend(box, scatter, paint) {
  const { source } = scatter;
  if (source === null) return box.replaceChildren();
  if (paint.names) {
    const names = [...paint.names];
    if (paint.code.includes(names.length)) names.push("none");
    return box.replaceChildren(...names.map((name, code) => {
      const button = element("button");
      button.type = "button";
      button.append(swatch(paint, code), element("span", name));
      const show = () => button.setAttribute("aria-pressed", String(!scatter.hidden.has(code)));
      button.addEventListener("click", () => {
        scatter.toggle(code);
        show();
      });
      show();
      return button;
    }));
  }
  const round = (end) => (source.kind === "number" ? String(Number(end.toPrecision(3))) : source.words(end));
  const ends = extent(source.values).map((end) => element("span", round(end)));
  box.replaceChildren(ends[0], ramp(paint), ends[1]);
}

/** One stamp on a small canvas, as in the scatter. */
function swatch(paint, code) {
  const canvas = element("canvas");
  canvas.width = canvas.height = 18;
  const context = canvas.getContext("2d");
  context.fillStyle = themeColor("--panel");
  context.fillRect(0, 0, 18, 18);
  const image = context.getImageData(0, 0, 18, 18);
  const one = { ...paint, code: Uint16Array.of(code) };
  const stamps = SHAPES.map((_, k) => makeStamp(k, 6));
  stampAll(image, [0], [9], [9], one, stamps, new Set(), { left: 0, right: 18, top: 0, bottom: 18 });
  context.putImageData(image, 0, 0);
  canvas.setAttribute("aria-hidden", "true");
  return canvas;
}

function ramp(paint) {
  const canvas = element("canvas");
  [canvas.width, canvas.height] = [120, 14];
  const context = canvas.getContext("2d");
  for (let x = 0; x < 120; x++) {
    context.fillStyle = `rgb(${paint.colors[Math.floor((x / 120) * SCALE_STEPS)].join(" ")})`;
    context.fillRect(x, 0, 1, 14);
  }
  canvas.setAttribute("aria-hidden", "true");
  return canvas;
}

function connectWalk(data, scatter) {
  byId("walk").hidden = !data.walk;
  if (!data.walk) return;
  const names = ["component", "step", "place", "view"];
  const parts = names.map((name) => [name, byId(`walk-${name}`)]);
  new Walk(data, scatter, Object.fromEntries(parts), showAxis);
}

/** Bring a component onto an axis, if it is on none. */
function showAxis(component) {
  const selects = ["x", "y", "z"].map((name) => byId(`axis-${name}`));
  if (selects.some((select) => select.value === String(component))) return;
  selects[0].value = component;
  selects[0].dispatchEvent(new Event("change"));
}

/** Sets of rows: drawn around, searched for, counted, cleared. */
function connectSets(data, fields, scatter, gestures, selection) {
  const search = new Search(data, fields);
  const [lasso, box, found] = [byId("lasso"), byId("search"), byId("found")];
  lasso.addEventListener("click", () => {
    gestures.setLasso(!gestures.lassoing);
    lasso.setAttribute("aria-pressed", String(gestures.lassoing));
  });
  const look = () => {
    let [mask, trouble] = [null, ""];
    try {
      mask = search.find(box.value);
    } catch (error) {
      if (!(error instanceof NotUnderstood)) throw error;
      trouble = error.message;
    }
    selection.mark(mask, "search");
    found.classList.toggle("wrong", Boolean(trouble));
    box.setAttribute("aria-invalid", String(Boolean(trouble)));
    if (trouble) found.textContent = `Not understood: ${trouble}`;
  };
  box.addEventListener("input", look);
  box.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || !selection.mask || !selection.count) return;
    selection.choose(selection.mask.indexOf(1));
    scatter.reveal(selection.place);
  });
  byId("clear").addEventListener("click", () => selection.clear());
  selection.whenMarked.push((by) => {
    if (by === "lasso" || by === null) box.value = "";
    const { mask, count } = selection;
    found.classList.remove("wrong");
    byId("clear").hidden = !mask;
    found.textContent = mask ? `${count} of ${data.count} rows selected` : "";
    byId("export-csv").textContent = mask ? `CSV of ${count}` : "CSV";
  });
}

function connectExports(data, fields, scatter, selection) {
  const label = (id, text) => byId(id).setAttribute("aria-label", text);
  label("export-csv", "Save the rows selected, or all shown, as CSV");
  label("export-png", "Save the picture as PNG");
  label("export-svg", "Save the picture as SVG");
  byId("export-csv").addEventListener("click", () => {
    const text = rowsAsCSV(data, fields, selection.places());
    save("rows.csv", new Blob([text], { type: "text/csv" }));
  });
  byId("export-png").addEventListener("click", () => {
    scatter.canvas.toBlob((blob) => save("scatter.png", blob));
  });
  byId("export-svg").addEventListener("click", () => {
    save("scatter.svg", new Blob([scatterAsSVG(scatter)], { type: "image/svg+xml" }));
  });
}

/** Tables that are wider than the screen say so. */
function markWideTables() {
  for (const box of document.querySelectorAll(".wide")) {
    const hint = element("p", "This table scrolls sideways \u2192", "hint");
    box.before(hint);
    new ResizeObserver(() => {
      const scrolls = box.scrollWidth > box.clientWidth + 1;
      box.classList.toggle("scrolls", scrolls);
      hint.hidden = !scrolls;
    }).observe(box);
  }
}

/** Tooltip, details and what is spoken follow the selection. */
function connectRows(texts, scatter, selection) {
  const tooltip = () => showTooltip(byId("tooltip"), texts, scatter, selection);
  const chosen = () => {
    const i = selection.place;
    showDetails(byId("details"), texts, selection, scatter);
    byId("announce").textContent = i === null ? "" : texts.spoken(i, scatter.view.axes);
  };
  scatter.onDraw = tooltip;
  selection.whenHovered.push(tooltip);
  selection.whenChosen.push(chosen);
  chosen();
}

function connectDensity(data, scatter) {
  byId("density-choice").hidden = data.count <= MANY;
  byId("density").checked = scatter.withDensity;
  byId("density").addEventListener("change", (event) => scatter.showDensity(event.target.checked));
}

function connectRings(data, scatter) {
  byId("rings-choice").hidden = !data.unlike.length;
  byId("rings").addEventListener("change", (event) => scatter.showRings(event.target.checked));
}

function connectImages(data, scatter) {
  byId("images-choice").hidden = !data.images;
  byId("images").addEventListener("change", (event) => scatter.showImages(event.target.checked));
}

async function main() {
  const data = await unpackAll(JSON.parse(byId("data").textContent));
  const fields = makeFields(data);
  const selection = new Selection(data.count);
  const texts = new RowTexts(data, fields);
  const scatter = new Scatter(data, byId("plot"), selection);
  const gestures = new Gestures(scatter, selection);
  connectAxes(data, scatter);
  connectColors(data, fields, scatter);
  connectImages(data, scatter);
  connectDensity(data, scatter);
  connectRings(data, scatter);
  connectWalk(data, scatter);
  connectSets(data, fields, scatter, gestures, selection);
  connectHistograms(fields, selection);
  connectExports(data, fields, scatter, selection);
  markWideTables();
  connectOutliers(byId("outliers"), texts, selection, scatter);
  byId("zoom-in").addEventListener("click", () => scatter.zoom(1.25));
  byId("zoom-out").addEventListener("click", () => scatter.zoom(0.8));
  byId("reset").addEventListener("click", () => scatter.reset());
  connectRows(texts, scatter, selection);
  document.documentElement.dataset.ready = "true";
}

main().catch((error) => {
  byId("trouble").hidden = false;
  const text = `The scatter could not be drawn: ${error.message}. The browser may be too old.`;
  byId("trouble").textContent = text;
});
