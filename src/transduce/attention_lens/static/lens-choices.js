// What a model said, how sure it was, and what else it held likely: of a word, of a mask, of the whole.

import { element, percent } from "./lens-elements.js";
import { isOneText } from "./lens-kinds.js";
import { labelNode, labelsOf, pieceLabel } from "./lens-labels.js";

const TITLES = {
  step: "What else it could have written",
  mask: "What it would fill in",
  tag: "Tags",
  label: "What it says of the text",
  picture: "What it sees",
};
const NOTES = {
  step: "Choose a word of the translation to see how sure the model was.",
  text: "Choose a word to see how sure the model was.",
  mask: "Choose a mask to see what the model holds likely there.",
  tag: "Choose a word to see how sure the model was.",
  label: "",
};

/** What was said: at places of one side, each {what, place, token, probability, alternatives}, and of the whole. */
export class Answers {
  constructor({ steps = [], guesses = [] }) {
    const said = ({ what, place, alternatives }) => ({ what, place, ...alternatives[0], alternatives });
    this.placed = steps.length
      ? steps.map((step, place) => ({ what: "step", place, ...step }))
      : guesses.filter(({ place }) => place !== null).map(said);
    this.whole = guesses.filter(({ place }) => place === null).map(said);
    this.what = (this.placed[0] ?? this.whole[0])?.what;
    this.side = this.what === "step" ? "target" : "source";
  }

  /** Those of a word or subword of a side. */
  of(side, { first, last }) {
    return side === this.side ? this.placed.filter(({ place }) => first <= place && place <= last) : [];
  }

  /** How probable a word is: all its subwords, one after the other; of tags the first counts. */
  sure(side, unit) {
    const found = this.of(side, unit);
    if (this.what === "tag") return found[0]?.probability;
    return found.length ? found.reduce((product, one) => product * one.probability, 1) : undefined;
  }

  /** The place that the model was least sure of: the one to begin with. */
  get leastSure() {
    const least = (best, one) => (one.probability < best.probability ? one : best);
    return this.placed.length ? this.placed.reduce(least).place : undefined;
  }
}

export class Choices {
  /** `onAlternative(prefix, token)`, if given, is called when another token is chosen at a step. */
  constructor(data, answers, onAlternative) {
    Object.assign(this, { data, answers, onAlternative });
    this.body = element("div", "lens-choices", { tabindex: "0", role: "group", "aria-label": "Alternatives" });
    this.panel = element(
      "section",
      "lens-panel lens-panel-choices",
      { "aria-label": "Choices" },
      element("h2", "lens-title", { text: TITLES[data.picture ? "picture" : answers.what] }),
      element("p", "lens-note", { text: NOTES[answers.what === "step" && isOneText(data) ? "text" : answers.what] }),
      this.body,
      element("div", "lens-whole", {}, ...answers.whole.map((one) => this.answer(one))),
    );
    this.body.hidden = !answers.placed.length;
    this.panel.hidden = !answers.what;
  }

  draw({ level, step }) {
    const drawn = `${level} ${step}`;
    if (this.drawn === drawn) return;
    this.drawn = drawn;
    const { answers } = this;
    const units = step === undefined ? [] : labelsOf(this.data[answers.side], level);
    const unit = units.find(({ first, last }) => first <= step && step <= last);
    if (unit) this.body.replaceChildren(...answers.of(answers.side, unit).map((one) => this.answer(one)));
  }

  answer(said) {
    const { what, token, alternatives } = said;
    const shown = alternatives.some((one) => one.token === token) ? alternatives : [...alternatives, said];
    const list = element("ol", "lens-alternatives");
    for (const one of shown) list.append(element("li", "", {}, this.alternative(one, said)));
    const heading = what === "label" ? [] : [element("h3", "lens-step", {}, ...this.heading(said))];
    return element("div", "", {}, ...heading, list);
  }

  heading({ what, place, token, probability }) {
    const share = ` ${percent(probability)}`;
    if (what === "next") return ["What would come next"];
    if (what === "step") return [`Step ${place + 1}: `, labelNode(pieceLabel(token), "lens-strong"), share];
    const read = labelNode(pieceLabel(this.data.source.tokens[place]), "lens-strong");
    return what === "mask" ? [`Token ${place + 1}: `, read] : [read, `: ${token}`, share];
  }

  alternative({ token, probability: sure }, { what, place, token: said }) {
    const piece = what === "tag" || what === "label" ? { text: token } : pieceLabel(token);
    const parts = [labelNode(piece), element("span", "lens-share", { text: percent(sure) })];
    const written = token === said;
    const className = `lens-alternative${written ? " lens-written" : ""}`;
    const made =
      this.onAlternative && what === "step" && !written
        ? element(
            "button",
            className,
            {
              type: "button",
              title: "Write this instead",
              onclick: () => this.onAlternative(this.data.target.tokens.slice(0, place), token),
            },
            ...parts,
          )
        : element("span", className, {}, ...parts);
    made.style.setProperty("--lens-sure", sure);
    return made;
  }
}
