// How far the translation can be trusted: a number, a bar, and on request what they mean.

import { byId, element } from "./element.js";

const LOW = 0.4; // less than half right, most of the time

/** Whether a reader should look at a translation: the model trusts it little, or says what is wrong with it. */
export function isDoubtful({ confidence, warnings }) {
  return (typeof confidence === "number" && confidence < LOW) || Boolean(warnings?.length);
}

/** The confidence of some sentences together, the mean by length; null where one of them has none. */
export function confidenceOf(sentences) {
  if (!sentences.length || sentences.some(({ confidence }) => typeof confidence !== "number")) return null;
  const length = sentences.reduce((sum, { text }) => sum + text.length, 0);
  return length ? sentences.reduce((sum, { text, confidence }) => sum + confidence * text.length, 0) / length : null;
}

/** The indicator under the translation; a click on it shows or hides what it means. */
export class ConfidenceMark {
  constructor() {
    this.button = byId("confidence");
    this.meaning = byId("confidence-meaning");
    this.button.addEventListener("click", () => this.open(this.meaning.hidden));
  }

  /** Draw the confidence of what is shown; nothing where it is not known. */
  draw({ sentences }) {
    const confidence = confidenceOf(sentences);
    this.button.hidden = confidence === null;
    if (this.button.hidden) {
      this.open(false);
      return;
    }
    const bar = element("span", { class: "meter", "aria-hidden": "true" });
    bar.style.setProperty("--share", confidence.toFixed(3));
    this.button.classList.toggle("low", confidence < LOW);
    this.button.replaceChildren("Confidence ", element("b", {}, confidence.toFixed(2)), bar);
    this.button.title = meaningOf(confidence, sentences);
    this.meaning.textContent = this.button.title;
  }

  open(wanted) {
    this.meaning.hidden = !wanted;
    this.button.setAttribute("aria-expanded", String(wanted));
  }
}

function meaningOf(confidence, sentences) {
  const share = Math.round(100 * confidence);
  const meaning = `${confidence.toFixed(2)}: sentences like this came out ${share} % like a human’s translation (chrF).`;
  if (sentences.length < 2) return meaning;
  const least = sentences.reduce((one, other) => (other.confidence < one.confidence ? other : one));
  return `${meaning} That is the mean of ${sentences.length}; the least, ${least.confidence.toFixed(2)}, is “${shortened(least.text)}”`;
}

/** The beginning of a text, up to a space where it has one. */
function shortened(text) {
  const letters = [...text];
  return letters.length <= 60 ? text : `${letters.slice(0, 60).join("").replace(/\s+\S*$/u, "")} …`;
}
