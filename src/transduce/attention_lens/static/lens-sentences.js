// The sentences as text (or the one there is), how sure the model was of each word, and what it said of it.

import { element, percent, rove } from "./lens-elements.js";
import { isOneText } from "./lens-kinds.js";
import { labelNode, labelsOf, pieceLabel } from "./lens-labels.js";

const LONG = 60;
/** Words of all sentences from which they are set smaller. */

export class Sentences {
  constructor(data, answers, { onPoint, onPin }) {
    Object.assign(this, { data, answers, onPoint, onPin });
    this.sides = ["source", "target"].filter((side) => data[side].tokens.length);
    const alone = isOneText(data);
    this.paragraphs = {};
    this.panel = element("section", "lens-sentences", { "aria-label": alone ? "Text" : "Sentence and translation" });
    for (const side of this.sides) {
      this.paragraphs[side] = element("p", `lens-sentence lens-sentence-${side}`);
      const name = data[`${side}_language`] ?? (alone ? "text" : { source: "source", target: "translation" }[side]);
      this.panel.append(element("span", "lens-language", { text: name }), this.paragraphs[side]);
    }
    for (const one of answers.whole.filter(({ what }) => what === "label")) this.panel.append(...verdict(one));
  }

  draw(view) {
    if (this.built !== view.level) this.build(view.level);
    this.built = view.level;
    this.point(view);
  }

  build(level) {
    this.units = Object.fromEntries(this.sides.map((side) => [side, labelsOf(this.data[side], level)]));
    this.buttons = {};
    const long = Object.values(this.units).flat().length > LONG;
    for (const side of this.sides) {
      this.paragraphs[side].classList.toggle("lens-sentence-long", long);
      const parts = this.units[side].map((label, index) => this.unit(side, label, index));
      this.buttons[side] = parts;
      // Its own direction is that of the sentence: the units inside keep theirs.
      const group = element("span", "lens-units", {
        dir: direction(this.data[side].text),
        role: "group",
        "aria-label": side,
      });
      for (const [index, part] of parts.entries()) {
        if (index && this.units[side][index].spaced) group.append(" ");
        group.append(part);
        if (this.units[side][index].newline) group.append(element("br"));
      }
      rove(group, parts, (key, place) => {
        const ahead = group.dir === "rtl" ? "ArrowLeft" : "ArrowRight";
        const back = group.dir === "rtl" ? "ArrowRight" : "ArrowLeft";
        return { [ahead]: place + 1, [back]: place - 1, Home: 0, End: parts.length - 1 }[key];
      });
      this.paragraphs[side].replaceChildren(group);
    }
  }

  unit(side, label, index) {
    const focus = { sentence: side, index };
    const button = element(
      "button",
      `lens-unit lens-unit-${side}`,
      {
        type: "button",
        "aria-pressed": "false",
        "data-index": index,
        onpointerenter: () => this.onPoint(focus),
        onpointerleave: () => this.onPoint(null),
        onfocus: (event) => event.target.matches(":focus-visible") && this.onPoint(focus),
        onblur: () => this.onPoint(null),
        onclick: () => this.onPin(focus),
      },
      labelNode({ ...label, mark: false }),
    );
    const [said] = this.answers.of(side, label);
    if (said) {
      const sure = this.answers.sure(side, label);
      button.classList.add("lens-unit-sure");
      button.style.setProperty("--lens-sure", sure);
      button.title = `probability ${percent(sure)}`;
      if (said.what !== "step") {
        button.classList.add("lens-unit-said", `lens-unit-${said.what}`);
        const piece = said.what === "mask" ? { ...pieceLabel(said.token), mark: false } : { text: said.token };
        button.append(labelNode(piece, "lens-said"));
      }
    }
    return button;
  }

  point({ sentence, step }) {
    for (const side of this.sides) {
      for (const [index, button] of this.buttons[side].entries()) {
        button.classList.toggle("lens-here", sentence?.[side] === index);
        const { first, last } = this.units[side][index];
        button.setAttribute("aria-pressed", String(side === this.answers.side && first <= step && step <= last));
      }
    }
  }
}

/** What a model said of the whole, in a line: its name and the answer. */
export function verdict({ token, probability }) {
  return [
    element("span", "lens-language", { text: "label" }),
    element("p", "lens-verdict", {}, token, element("span", "lens-share", { text: ` ${percent(probability)}` })),
  ];
}

/** The direction of a text: that of its first letter that has one. */
function direction(text) {
  const first = /\p{L}/u.exec(text)?.[0] ?? "";
  return /[\p{Script=Arabic}\p{Script=Hebrew}\p{Script=Syriac}\p{Script=Thaana}\p{Script=Nko}\p{Script=Adlam}]/u.test(
    first,
  )
    ? "rtl"
    : "ltr";
}
