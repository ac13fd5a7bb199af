// The two sentences as text, how sure the model was of each word, and what else it could have written.

import { element, percent, rove } from "./lens-elements.js";
import { labelNode, labelsOf, pieceLabel } from "./lens-labels.js";

const LONG = 60;
/** Words of both sentences from which they are set smaller. */

export class Sentences {
  constructor(data, { onPoint, onPin }) {
    Object.assign(this, { data, onPoint, onPin });
    this.source = element("p", "lens-sentence lens-sentence-source");
    this.target = element("p", "lens-sentence lens-sentence-target");
    this.panel = element(
      "section",
      "lens-sentences",
      { "aria-label": "Sentence and translation" },
      element("span", "lens-language", { text: data.source_language ?? "source" }),
      this.source,
      element("span", "lens-language", { text: data.target_language ?? "translation" }),
      this.target,
    );
  }

  draw(view) {
    if (this.built !== view.level) this.build(view.level);
    this.built = view.level;
    this.point(view);
  }

  build(level) {
    this.units = { source: labelsOf(this.data.source, level), target: labelsOf(this.data.target, level) };
    this.buttons = {};
    for (const side of ["source", "target"]) {
      const paragraph = this[side];
      paragraph.classList.toggle("lens-sentence-long", this.units.source.length + this.units.target.length > LONG);
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
      }
      rove(group, parts, (key, place) => {
        const ahead = group.dir === "rtl" ? "ArrowLeft" : "ArrowRight";
        const back = group.dir === "rtl" ? "ArrowRight" : "ArrowLeft";
        return { [ahead]: place + 1, [back]: place - 1, Home: 0, End: parts.length - 1 }[key];
      });
      paragraph.replaceChildren(group);
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
    if (side === "target") {
      const sure = probability(this.data.steps, label);
      button.style.setProperty("--lens-sure", sure);
      button.title = `probability ${percent(sure)}`;
    }
    return button;
  }

  point({ sentence, step }) {
    for (const side of ["source", "target"]) {
      for (const [index, button] of this.buttons[side].entries()) {
        button.classList.toggle("lens-here", sentence?.[side] === index);
        const { first, last } = this.units[side][index];
        button.setAttribute("aria-pressed", String(side === "target" && first <= step && step <= last));
      }
    }
  }
}

export class Choices {
  /** `onAlternative(prefix, token)`, if given, is called when another token is chosen at a step. */
  constructor(data, onAlternative) {
    Object.assign(this, { data, onAlternative });
    this.body = element("div", "lens-choices", { tabindex: "0", role: "group", "aria-label": "Alternatives" });
    this.panel = element(
      "section",
      "lens-panel lens-panel-choices",
      { "aria-label": "Choices" },
      element("h2", "lens-title", { text: "What else it could have written" }),
      element("p", "lens-note", { text: "Choose a word of the translation to see how sure the model was." }),
      this.body,
    );
  }

  draw({ level, step }) {
    const drawn = `${level} ${step}`;
    if (this.drawn === drawn) return;
    this.drawn = drawn;
    const unit = labelsOf(this.data.target, level).find(({ first, last }) => first <= step && step <= last);
    const steps = this.data.steps.slice(unit.first, unit.last + 1);
    this.body.replaceChildren(...steps.map((one, place) => this.step(one, unit.first + place)));
  }

  step({ token, probability: sure, alternatives }, place) {
    const shown = alternatives.some((one) => one.token === token)
      ? alternatives
      : [...alternatives, { token, probability: sure }];
    const heading = element(
      "h3",
      "lens-step",
      {},
      `Step ${place + 1}: `,
      labelNode(pieceLabel(token), "lens-strong"),
      ` ${percent(sure)}`,
    );
    const list = element("ol", "lens-alternatives");
    for (const one of shown) list.append(element("li", "", {}, this.alternative(one, place, one.token === token)));
    return element("div", "", {}, heading, list);
  }

  alternative({ token, probability: sure }, place, written) {
    const parts = [labelNode(pieceLabel(token)), element("span", "lens-share", { text: percent(sure) })];
    const className = `lens-alternative${written ? " lens-written" : ""}`;
    const prefix = this.data.target.tokens.slice(0, place);
    const made =
      this.onAlternative && !written
        ? element(
            "button",
            className,
            { type: "button", title: "Write this instead", onclick: () => this.onAlternative(prefix, token) },
            ...parts,
          )
        : element("span", className, {}, ...parts);
    made.style.setProperty("--lens-sure", sure);
    return made;
  }
}

/** The step that the model was least sure of: the one to begin with. */
export function leastSure(steps) {
  return steps.reduce((least, step, place) => (step.probability < steps[least].probability ? place : least), 0);
}

/** A word is as probable as all its subwords, one after the other. */
function probability(steps, { first, last }) {
  return steps.slice(first, last + 1).reduce((product, step) => product * step.probability, 1);
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
