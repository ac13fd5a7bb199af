// What to show: rows of buttons for the kind of attention, the units, the layer and the heads.

import { headColour } from "./lens-colours.js";
import { buttonRow, element } from "./lens-elements.js";
import { MEAN } from "./lens-maps.js";

const UNITS = { words: "Words", subwords: "Subwords" };

export class Bar {
  /** Each of `onKind`, `onLevel`, `onLayer` and `onHead` is called with what is chosen. */
  constructor(maps, chosen) {
    Object.assign(this, { maps, chosen });
    this.panel = element("div", "lens-bar", { role: "toolbar", "aria-label": "What to show" });
  }

  draw(view) {
    const { kind, level, layer, heads } = view;
    if (this.built !== kind) this.build(kind);
    this.built = kind;
    this.rows.kind.press((one) => one === kind);
    this.rows.level.press((one) => one === level);
    this.rows.layer.press((one) => one === layer);
    this.rows.heads.press((one) => (one === MEAN ? heads.size === this.maps.heads(kind) : heads.has(one)));
  }

  build(kind) {
    const { maps, chosen } = this;
    const layers = [...Array(maps.layers(kind)).keys()];
    const heads = [...Array(maps.heads(kind)).keys()];
    const kinds = maps.kinds.map((one) => [one, maps.wording[one].name, maps.wording[one].title]);
    const levels = maps.levels.map((one) => [one, UNITS[one]]);
    this.rows = {
      kind: buttonRow("Attention", kinds, chosen.onKind),
      level: buttonRow("Units", levels, chosen.onLevel),
      layer: buttonRow(
        "Layer",
        [...layers.map((one) => [one, String(one + 1), `Layer ${one + 1}`]), [MEAN, "Mean", "Mean of all layers"]],
        chosen.onLayer,
      ),
      heads: buttonRow(
        "Heads",
        [
          ...heads.map((one) => [one, String(one + 1), `Head ${one + 1}`, headColour(one)]),
          [MEAN, "All", "All heads on"],
        ],
        chosen.onHead,
      ),
    };
    // Where there is one, there is nothing to choose.
    const counts = { kind: kinds.length, level: levels.length, layer: layers.length, heads: heads.length };
    const offered = Object.keys(this.rows).filter((name) => counts[name] > 1);
    this.panel.replaceChildren(...offered.map((name) => this.rows[name].row));
    this.panel.hidden = !offered.length;
  }
}
