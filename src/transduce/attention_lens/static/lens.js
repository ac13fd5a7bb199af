// The attention lens: mountLens(container, data) draws it. What the data is: AttentionMaps.as_json in maps.py.
//
// All panels show one view: a kind of attention, words or subwords, a layer (or the mean of all), and the heads that are
// on. A focus is a row or column of the maps that is pointed at, with the mouse, a finger or the keyboard.

import { headColour, onThemeChange, palette } from "./lens-colours.js";
import { buttonRow, element } from "./lens-elements.js";
import { Lines } from "./lens-lines.js";
import { LargeMap } from "./lens-map.js";
import { MEAN, Maps } from "./lens-maps.js";
import { Overview } from "./lens-overview.js";
import { Choices, leastSure, Sentences } from "./lens-sentences.js";

const KINDS = {
  cross: ["Cross", "Cross-attention: the translation looks at the source"],
  encoder: ["Encoder", "Encoder self-attention: the source looks at itself"],
  decoder: ["Decoder", "Decoder self-attention: the translation looks at what is written so far"],
};

/**
 * Draw the lens into a container, in place of what is there.
 *
 * `onAlternative(prefixTokens, token)` is called when the user chooses another token at a step; `view` is what to begin
 * with: {kind, level, layer, heads}, layer and heads counted from 1. Returns {destroy()}.
 */
export function mountLens(container, data, { onAlternative, view: wanted = {} } = {}) {
  const lens = new Lens(data, onAlternative, wanted);
  container.replaceChildren(lens.root);
  lens.draw();
  return {
    destroy() {
      lens.destroy();
      container.replaceChildren();
    },
  };
}

class Lens {
  constructor(data, onAlternative, wanted) {
    this.maps = new Maps(data);
    this.root = element("div", "lens");
    const kind = this.maps.kinds.includes(wanted.kind) ? wanted.kind : this.maps.kinds[0];
    const level = wanted.level ?? "words";
    this.view = {
      kind,
      level,
      focus: null,
      pinned: null,
      step: leastSure(data.steps),
      ...this.start(kind, level, wanted),
    };
    const pointing = { onPoint: (focus) => this.point(focus), onPin: (focus) => this.pin(focus) };
    this.sentences = new Sentences(data, {
      onPoint: (at) => this.point(at && this.fromSentence(at)),
      onPin: (at) => this.pin(this.fromSentence(at)),
    });
    this.overview = new Overview(this.maps, (layer, head) => this.choose(layer, head));
    this.lines = new Lines(this.maps, pointing);
    this.map = new LargeMap(this.maps, pointing);
    this.choices = new Choices(data, onAlternative);
    this.bar = element("div", "lens-bar", { role: "toolbar", "aria-label": "What to show" });
    const panels = [this.lines.panel, this.map.panel, this.overview.panel, this.choices.panel];
    this.root.append(this.sentences.panel, this.bar, element("div", "lens-panels", {}, ...panels));
    this.root.addEventListener("keydown", (event) => event.key === "Escape" && this.pin(null));
    this.stopTheme = onThemeChange(() => this.draw());
  }

  destroy() {
    this.stopTheme();
    this.lines.destroy();
    this.map.destroy();
  }

  /** Layer and heads to begin with: as wanted, else all heads of the layer that is surest. */
  start(kind, level, { layer, heads } = {}) {
    const all = [...Array(this.maps.heads(kind)).keys()];
    const some = (heads ?? []).map((head) => head - 1).filter((head) => all.includes(head));
    const known = layer >= 1 && layer <= this.maps.layers(kind);
    return { layer: known ? layer - 1 : this.maps.sharpest(kind, level), heads: new Set(some.length ? some : all) };
  }

  draw() {
    const colours = palette(this.root);
    this.buildBar();
    for (const part of [this.sentences, this.overview, this.lines, this.map, this.choices])
      part.draw(this.view, colours);
  }

  /** Show something else; a word that is kept stays kept where rows and columns are the same. */
  change(changes) {
    const others = "kind" in changes || "level" in changes;
    const focus = others ? null : this.view.pinned;
    Object.assign(this.view, changes, { focus, pinned: focus, sentence: this.inSentences(focus) });
    this.draw();
  }

  buildBar() {
    const { kind, level, layer, heads } = this.view;
    const { maps } = this;
    if (this.barKind !== kind) {
      const layers = [...Array(maps.layers(kind)).keys()];
      const all = [...Array(maps.heads(kind)).keys()];
      this.rows = {
        kind: buttonRow(
          "Attention",
          maps.kinds.map((one) => [one, ...KINDS[one]]),
          (one) => this.change({ kind: one, ...this.start(one, this.view.level) }),
        ),
        level: buttonRow(
          "Units",
          [
            ["words", "Words"],
            ["subwords", "Subwords"],
          ],
          (one) => this.change({ level: one }),
        ),
        layer: buttonRow(
          "Layer",
          [...layers.map((one) => [one, String(one + 1), `Layer ${one + 1}`]), [MEAN, "Mean", "Mean of all layers"]],
          (one) => this.change({ layer: one }),
        ),
        heads: buttonRow(
          "Heads",
          [
            ...all.map((one) => [one, String(one + 1), `Head ${one + 1}`, headColour(one)]),
            [MEAN, "All", "All heads on"],
          ],
          (one) => this.toggle(one),
        ),
      };
      this.bar.replaceChildren(...Object.values(this.rows).map(({ row }) => row));
      this.barKind = kind;
    }
    this.rows.kind.press((one) => one === kind);
    this.rows.level.press((one) => one === level);
    this.rows.layer.press((one) => one === layer);
    this.rows.heads.press((one) => (one === MEAN ? heads.size === maps.heads(kind) : heads.has(one)));
  }

  /** Switch a head on or off, or all of them on; when all are on already, all off. */
  toggle(head) {
    const all = [...Array(this.maps.heads(this.view.kind)).keys()];
    const heads = new Set(this.view.heads);
    if (head === MEAN) return this.change({ heads: new Set(heads.size === all.length ? [] : all) });
    if (!heads.delete(head)) heads.add(head);
    return this.change({ heads: new Set(all.filter((one) => heads.has(one))) });
  }

  /** Show one head of one layer alone, or a mean. */
  choose(layer, head) {
    const all = [...Array(this.maps.heads(this.view.kind)).keys()];
    this.change({ layer, heads: new Set(head === MEAN ? all : [head]) });
  }

  point(focus) {
    this.view.focus = focus?.side ? focus : this.view.pinned;
    this.view.sentence = this.inSentences(focus ?? this.view.pinned);
    for (const part of [this.sentences, this.lines, this.map]) part.point(this.view);
  }

  /** Keep a focus until it is chosen again, and show the choices of a word of the translation. */
  pin(focus) {
    const { pinned, kind, level } = this.view;
    const again =
      focus && pinned && focus.side === pinned.side && focus.index === pinned.index && focus.other === pinned.other;
    this.view.pinned = again || !focus?.side ? null : focus;
    const at = focus?.sentence ?? this.inSentences(focus)?.target;
    if (at !== undefined) {
      const labels = this.maps.labels(kind === "encoder" ? "decoder" : kind, level).rows;
      this.view.step = labels[at].first;
      this.choices.draw(this.view);
    }
    this.point(focus?.side ? focus : null);
  }

  /** A word of a sentence as row or column of the present maps; the translation is in no map of the encoder. */
  fromSentence({ sentence, index }) {
    const { kind } = this.view;
    if (sentence === "target") return kind === "encoder" ? { sentence: index } : { side: "rows", index };
    return kind === "decoder" ? {} : { side: kind === "cross" ? "columns" : "rows", index };
  }

  /** The words of the sentences that a focus is about. */
  inSentences(focus) {
    if (!focus?.side) return focus?.sentence === undefined ? null : { target: focus.sentence };
    const { kind } = this.view;
    const places = {
      rows: focus.side === "rows" ? focus.index : focus.other,
      columns: focus.side === "columns" ? focus.index : focus.other,
    };
    if (kind === "cross") return { target: places.rows, source: places.columns };
    return kind === "encoder" ? { source: places[focus.side] } : { target: places.rows };
  }
}
