// One map, large: a row for each token that looks, a column for each that is looked at.

import { gradient, paint, position } from "./lens-colours.js";
import { element, percent } from "./lens-elements.js";
import { labelNode } from "./lens-labels.js";
import { MEAN, strongest } from "./lens-maps.js";

const LARGEST = 52;
const SMALLEST = 5;
const ENLARGED = 18;
const TALLEST = 540;
const BESIDE = 42;
/** Pixels of a panel beside labels and cells. */
const SLANTED = 20;
/** Cells this wide have slanted labels, which lean over the edge; narrower ones have upright labels. */
const LABEL = 13;
/** Pixels that a label needs: where cells are smaller, labels are left out between others. */

export class LargeMap {
  constructor(maps, { onPoint, onPin }) {
    Object.assign(this, { maps, onPoint, onPin, enlarged: false });
    this.title = element("h2", "lens-title");
    this.axes = element("p", "lens-note");
    this.canvas = element("canvas", "lens-map-canvas", { role: "img" });
    this.across = element("div", "lens-map-row-band", { "aria-hidden": "true" });
    this.down = element("div", "lens-map-column-band", { "aria-hidden": "true" });
    this.lattice = element("div", "lens-map-lattice", { "aria-hidden": "true" });
    this.cells = element("div", "lens-map-cells", {}, this.canvas, this.lattice, this.across, this.down);
    this.top = element("div", "lens-map-top", { "aria-hidden": "true" });
    this.left = element("div", "lens-map-left", { "aria-hidden": "true" });
    this.corner = element("div", "lens-map-corner", { "aria-hidden": "true" });
    this.scroll = element(
      "div",
      "lens-map-scroll",
      { tabindex: "0", role: "group", "aria-label": "Map; arrow keys move from cell to cell" },
      this.corner,
      this.top,
      this.left,
      this.cells,
    );
    this.readout = element("p", "lens-readout", { "aria-live": "polite" });
    this.bar = element("div", "lens-legend-bar");
    this.zoom = element("button", "lens-button lens-zoom", {
      type: "button",
      text: "Enlarge",
      "aria-pressed": "false",
      onclick: () => this.enlarge(),
    });
    this.panel = element(
      "section",
      "lens-panel lens-panel-map",
      { "aria-label": "One map" },
      element("div", "lens-panel-head", {}, this.title, this.zoom),
      this.axes,
      this.scroll,
      this.readout,
      legend(this.bar),
    );
    this.listen();
    this.observer = new ResizeObserver(() => this.view && this.measure());
    this.observer.observe(this.panel);
  }

  destroy() {
    this.observer.disconnect();
  }

  draw(view, { scale }) {
    this.view = view;
    const { kind, level } = view;
    this.labels = this.maps.labels(kind, level);
    this.map = view.heads.size
      ? this.maps.map(kind, level, view.layer, [...view.heads])
      : new Float32Array(this.labels.rows.length * this.labels.columns.length);
    paint(this.canvas, this.map, this.labels.columns.length, scale);
    this.bar.style.background = gradient(scale);
    this.title.textContent = this.name();
    const [down, across] = this.maps.wording[kind].axes;
    this.axes.textContent = `Rows: ${down}. Columns: ${across}.`;
    const found = view.heads.size ? strongest(this.map, this.labels).join(", ") : "no head is on";
    this.canvas.setAttribute("aria-label", `${this.title.textContent}. Strongest: ${found}.`);
    const built = `${kind} ${level}`;
    if (this.built !== built) {
      this.built = built;
      this.top.replaceChildren(...this.labels.columns.map(tick));
      this.left.replaceChildren(...this.labels.rows.map(tick));
    }
    this.measure();
  }

  name() {
    const { kind, layer, heads } = this.view;
    const total = this.maps.heads(kind);
    const layers = layer === MEAN ? "Mean of all layers" : `Layer ${layer + 1}`;
    const numbers = [...heads].sort((a, b) => a - b).map((head) => head + 1);
    if (!numbers.length) return `${layers}, no head`;
    if (numbers.length === 1) return `${layers}, head ${numbers[0]}`;
    return `${layers}, mean of ${numbers.length === total ? `all ${total} heads` : `heads ${numbers.join(", ")}`}`;
  }

  enlarge() {
    this.enlarged = !this.enlarged;
    this.zoom.setAttribute("aria-pressed", String(this.enlarged));
    this.zoom.textContent = this.enlarged ? "Fit" : "Enlarge";
    this.measure();
  }

  /** Fit cells and labels into the room there is. */
  measure() {
    const { rows, columns } = this.labels;
    const inside = this.panel.clientWidth - this.left.offsetWidth - BESIDE;
    if (inside <= 0) return;
    const overhang = leaning([...this.top.children]);
    const slanted = sized((inside - overhang) / columns.length, this.enlarged) >= SLANTED;
    const room = inside - (slanted ? overhang : 0);
    const width = sized(room / columns.length, this.enlarged);
    const height = Math.min(sized(TALLEST / rows.length, this.enlarged), Math.max(width, ENLARGED));
    this.zoom.hidden = sized(room / columns.length) >= ENLARGED && sized(TALLEST / rows.length) >= ENLARGED;
    this.cell = { width: Math.min(width, Math.max(height, ENLARGED)), height };
    const { style, classList } = this.scroll;
    style.setProperty("--lens-cell", `${this.cell.width}px`);
    style.setProperty("--lens-cell-height", `${this.cell.height}px`);
    style.setProperty("--lens-rows", rows.length);
    style.setProperty("--lens-columns", columns.length);
    style.setProperty("--lens-overhang", `${slanted ? overhang : 0}px`);
    classList.toggle("lens-map-steep", !slanted);
    classList.toggle("lens-map-fine", Math.min(this.cell.width, this.cell.height) < 12);
    thin(this.top, this.cell.width);
    thin(this.left, this.cell.height);
    this.point(this.view);
  }

  /** Mark the focused row or column, and say what is in the cell. */
  point(view) {
    this.view = view;
    const { focus } = view;
    const row = focus?.side === "rows" ? focus.index : focus?.other;
    const column = focus?.side === "columns" ? focus.index : focus?.other;
    for (const [band, ticks, place] of [
      [this.across, this.left, row],
      [this.down, this.top, column],
    ]) {
      band.hidden = place === undefined;
      band.style.setProperty("--lens-place", place ?? 0);
      ticks.querySelector(".lens-tick-on")?.classList.remove("lens-tick-on");
      ticks.children[place]?.classList.add("lens-tick-on");
    }
    this.readout.replaceChildren(...this.words(row, column));
  }

  words(row, column) {
    const { rows, columns } = this.labels;
    if (row === undefined && column === undefined) return ["Point at a cell to read its share."];
    if (column === undefined) column = largest(columns.length, (one) => this.map[row * columns.length + one]);
    if (row === undefined) row = largest(rows.length, (one) => this.map[one * columns.length + column]);
    const share = this.map[row * columns.length + column];
    const name = labelNode(rows[row], "lens-strong");
    return [
      this.maps.wording[this.view.kind].verb,
      name,
      ": ",
      element("b", "", { text: percent(share) }),
      " on ",
      labelNode(columns[column], "lens-strong"),
    ];
  }

  listen() {
    const place = (event) => {
      const box = this.cells.getBoundingClientRect();
      const column = Math.floor((event.clientX - box.left) / this.cell.width);
      const row = Math.floor((event.clientY - box.top) / this.cell.height);
      return this.focusOn(row, column);
    };
    this.cells.addEventListener("pointermove", (event) => this.onPoint(place(event)));
    this.cells.addEventListener("pointerleave", () => this.onPoint(null));
    this.cells.addEventListener("click", (event) => this.onPin(place(event)));
    this.scroll.addEventListener("blur", () => this.onPoint(null));
    this.scroll.addEventListener("keydown", (event) => {
      const steps = { ArrowDown: [1, 0], ArrowUp: [-1, 0], ArrowRight: [0, 1], ArrowLeft: [0, -1] };
      if (!(event.key in steps)) return;
      event.preventDefault();
      const { focus } = this.view;
      const at = focus?.side === "rows" ? [focus.index, focus.other ?? 0] : null;
      const [row, column] = at ? [at[0] + steps[event.key][0], at[1] + steps[event.key][1]] : [0, 0];
      const next = this.focusOn(row, column);
      this.onPoint(next);
      this.reveal(next);
    });
  }

  /** The focus on a cell, the nearest one there is. */
  focusOn(row, column) {
    const inside = (value, size) => Math.max(0, Math.min(size - 1, value));
    return {
      side: "rows",
      index: inside(row, this.labels.rows.length),
      other: inside(column, this.labels.columns.length),
    };
  }

  reveal({ index, other }) {
    const { scroll, left, top, cell } = this;
    const [x, y] = [other * cell.width, index * cell.height];
    const [width, height] = [scroll.clientWidth - left.offsetWidth, scroll.clientHeight - top.offsetHeight];
    if (x < scroll.scrollLeft || x + cell.width > scroll.scrollLeft + width) scroll.scrollLeft = x - width / 2;
    if (y < scroll.scrollTop || y + cell.height > scroll.scrollTop + height) scroll.scrollTop = y - height / 2;
  }
}

/** The size of a cell that has so much room. */
function sized(room, enlarged = false) {
  return Math.max(enlarged ? ENLARGED : SMALLEST, Math.min(LARGEST, Math.floor(room)));
}

/** Pixels that slanted labels lean over the right edge. */
function leaning(ticks) {
  const over = ticks.map((one, place) => one.offsetWidth * Math.SQRT1_2 - (ticks.length - place - 0.5) * SLANTED);
  return Math.ceil(Math.max(0, ...over)) + 8;
}

/** Leave out labels between others where there is no room for all. */
function thin(ticks, room) {
  const every = Math.ceil(LABEL / room);
  for (const [place, one] of [...ticks.children].entries()) one.classList.toggle("lens-tick-thin", place % every > 0);
}

function largest(count, value) {
  return [...Array(count).keys()].reduce((best, one) => (value(one) > value(best) ? one : best), 0);
}

function tick(label, place) {
  const made = element("span", "lens-tick", {}, labelNode(label));
  made.style.setProperty("--lens-place", place);
  return made;
}

/** The scale with its shares, spaced as the colours are. */
function legend(bar) {
  const ticks = [0, 0.1, 0.25, 0.5, 1].map((share) => {
    const made = element("span", "lens-legend-tick", { text: percent(share) });
    made.style.left = `${position(share) * 100}%`;
    return made;
  });
  return element(
    "div",
    "lens-legend",
    { "aria-hidden": "true" },
    bar,
    element("div", "lens-legend-ticks", {}, ...ticks),
  );
}
