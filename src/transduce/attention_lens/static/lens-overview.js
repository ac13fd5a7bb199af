// All heads as small maps: a row a layer, a column a head, and their means at the end.

import { headColour, paint } from "./lens-colours.js";
import { element, rove } from "./lens-elements.js";
import { MEAN, shrunk } from "./lens-maps.js";

const FINEST = 48;
/** Cells that a small map has at most, down and across. */

export class Overview {
  /**
   * `onChoose(layer, head)` is called with numbers from 0, or MEAN; `thumb(canvas, view, layer, head)`, if given, paints
   * what depends on the focus in place of whole maps.
   */
  constructor(maps, onChoose, thumb) {
    Object.assign(this, { maps, onChoose, thumb });
    this.body = element("div", "lens-overview");
    this.note = element("p", "lens-note");
    this.panel = element(
      "section",
      "lens-panel lens-panel-overview",
      { "aria-label": "All heads" },
      element("h2", "lens-title", { text: "All heads" }),
      this.note,
      this.body,
    );
  }

  draw(view, { scale }) {
    const { kind, level } = view;
    if (this.drawn !== kind) this.build(kind);
    this.drawn = kind;
    const width = this.maps.labels(kind, level).columns.length;
    if (!this.thumb) {
      for (const { canvas, layer, head } of this.cells) {
        const small = shrunk(this.maps.map(kind, level, layer, head), width, FINEST);
        paint(canvas, small.map, small.width, scale);
      }
    }
    this.mark(view);
    this.point(view);
  }

  point(view) {
    if (this.thumb) for (const { canvas, layer, head } of this.cells) this.thumb(canvas, view, layer, head);
  }

  /** Show which layer and heads are on. */
  mark({ kind, layer, heads }) {
    const all = heads.size === this.maps.heads(kind);
    for (const cell of this.cells) {
      const on = cell.layer === layer && (cell.head === MEAN ? all && heads.size > 1 : heads.has(cell.head));
      cell.button.setAttribute("aria-pressed", String(on));
    }
  }

  build(kind) {
    const layers = numbers(this.maps.layers(kind));
    const heads = numbers(this.maps.heads(kind));
    this.panel.hidden = layers.length * heads.length === 1; // it is the large one
    this.note.textContent = `${count(layers, "layer")} down, ${count(heads, "head")} across. Choose one to see it large.`;
    const grid = element("div", "lens-grid", { role: "group", "aria-label": "Layers and heads" });
    grid.style.setProperty("--lens-across", heads.length);
    this.cells = [];
    grid.append(element("span"));
    for (const head of heads)
      grid.append(element("span", "lens-grid-name", { text: name(head), "aria-hidden": "true" }));
    for (const layer of layers) {
      grid.append(element("span", "lens-grid-name", { text: name(layer), "aria-hidden": "true" }));
      for (const head of heads) grid.append(this.cell(layer, head));
    }
    const width = heads.length;
    const steps = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: width, ArrowUp: -width };
    const buttons = this.cells.map(({ button }) => button);
    rove(grid, buttons, (key, place) => {
      if (key === "Home") return 0;
      if (key === "End") return buttons.length - 1;
      const next = key in steps ? place + steps[key] : undefined;
      return next >= 0 && next < buttons.length ? next : undefined;
    });
    this.body.replaceChildren(grid);
  }

  cell(layer, head) {
    const canvas = element("canvas", "lens-thumb", { "aria-hidden": "true" });
    const where = [
      layer === MEAN ? "All layers" : `Layer ${layer + 1}`,
      head === MEAN ? "all heads" : `head ${head + 1}`,
    ];
    const spoken = where.join(", ");
    const button = element(
      "button",
      `lens-cell${layer === MEAN ? " lens-cell-below" : ""}${head === MEAN ? " lens-cell-beside" : ""}`,
      {
        type: "button",
        "aria-label": spoken,
        title: spoken,
        "aria-pressed": "false",
        "data-layer": layer + 1,
        "data-head": head + 1,
        onclick: () => this.onChoose(layer, head),
      },
      canvas,
    );
    if (head !== MEAN) button.style.setProperty("--lens-colour", headColour(head));
    this.cells.push({ button, canvas, layer, head });
    return button;
  }
}

/** 0, 1, …, and the mean where there are several. */
function numbers(size) {
  return size > 1 ? [...Array(size).keys(), MEAN] : [0];
}

function name(number) {
  return number === MEAN ? "mean" : String(number + 1);
}

function count(list, noun) {
  const size = list.filter((one) => one !== MEAN).length;
  return `${size} ${noun}${size === 1 ? "" : "s"}`;
}
