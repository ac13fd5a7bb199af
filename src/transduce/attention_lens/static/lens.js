// The attention lens: mountLens(container, data) draws it. What the data is: as_json in maps.py and patches.py.
//
// All panels show one view: a kind of attention, words or subwords, a layer (or the mean of all), and the heads that are
// on. A focus is a row or column of the maps that is pointed at, with the mouse, a finger or the keyboard.

import { Bar } from "./lens-bar.js";
import { Answers, Choices } from "./lens-choices.js";
import { onThemeChange, palette } from "./lens-colours.js";
import { element } from "./lens-elements.js";
import { labelsOf } from "./lens-labels.js";
import { Lines } from "./lens-lines.js";
import { LargeMap } from "./lens-map.js";
import { MEAN, Maps } from "./lens-maps.js";
import { Overview } from "./lens-overview.js";
import { caption, Picture, thumbs } from "./lens-picture.js";
import { Sentences } from "./lens-sentences.js";

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
    this.data = data;
    this.maps = new Maps(data);
    this.answers = new Answers(data);
    this.root = element("div", "lens");
    const kind = this.maps.kinds.includes(wanted.kind) ? wanted.kind : this.maps.kinds[0];
    const level = this.maps.levels.includes(wanted.level) ? wanted.level : this.maps.levels[0];
    this.view = {
      kind,
      level,
      focus: null,
      pinned: null,
      step: this.answers.leastSure,
      ...this.start(kind, level, wanted),
    };
    this.bar = new Bar(this.maps, {
      onKind: (one) => this.change({ kind: one, ...this.start(one, this.view.level) }),
      onLevel: (one) => this.change({ level: one }),
      onLayer: (one) => this.change({ layer: one }),
      onHead: (one) => this.toggle(one),
    });
    this.choices = new Choices(data, this.answers, onAlternative);
    const panels = [...this.makePanels(), this.choices];
    this.parts = [this.bar, ...panels];
    const columns = element("div", `lens-panels${data.picture ? " lens-panels-picture" : ""}`, {}, ...panels.map(({ panel }) => panel));
    this.root.append(this.makeHead(), this.bar.panel, columns);
    this.root.addEventListener("keydown", (event) => event.key === "Escape" && this.pin(null));
    this.stopTheme = onThemeChange(() => this.draw());
  }

  /** What is looked at: the sentences, of which each word can be pointed at, or the picture's name. */
  makeHead() {
    if (this.data.picture) return caption(this.data, this.answers);
    const sentences = new Sentences(this.data, this.answers, {
      onPoint: (at) => this.point(at && this.fromSentence(at)),
      onPin: (at) => this.pin(this.fromSentence(at)),
    });
    this.parts.unshift(sentences);
    return sentences.panel;
  }

  /** Who looks at whom, in three ways: in the text or picture itself, as one large map, as all small ones. */
  makePanels() {
    const { data, maps } = this;
    const pointing = { onPoint: (focus) => this.point(focus), onPin: (focus) => this.pin(focus) };
    const choose = (layer, head) => this.choose(layer, head);
    return [
      data.picture ? new Picture(maps, data, pointing) : new Lines(maps, pointing),
      new LargeMap(maps, pointing),
      new Overview(maps, choose, data.picture && thumbs(maps, data)),
    ];
  }

  destroy() {
    this.stopTheme();
    for (const part of this.parts) part.destroy?.();
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
    for (const part of this.parts) part.draw(this.view, colours);
  }

  /** Show something else; a word that is kept stays kept where rows and columns are the same. */
  change(changes) {
    const others = "kind" in changes || "level" in changes;
    const focus = others ? null : this.view.pinned;
    Object.assign(this.view, changes, { focus, pinned: focus, sentence: this.inSentences(focus) });
    this.draw();
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
    for (const part of this.parts) part.point?.(this.view);
  }

  /** Keep a focus until it is chosen again, and show what was said of its word. */
  pin(focus) {
    const { pinned } = this.view;
    const again =
      focus && pinned && focus.side === pinned.side && focus.index === pinned.index && focus.other === pinned.other;
    this.view.pinned = again || !focus?.side ? null : focus;
    const at = focus?.sentence ?? this.inSentences(focus)?.[this.answers.side];
    if (at !== undefined) {
      const unit = labelsOf(this.data[this.answers.side], this.view.level)[at];
      this.view.step = this.answers.of(this.answers.side, unit)[0]?.place ?? this.view.step;
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

  /** The words of the sentences that a focus is about; a picture has none. */
  inSentences(focus) {
    if (this.data.picture) return null;
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
