// The translation as words that can be pointed at, walked through with the keyboard, and copied as plain text.

import { element } from "./element.js";

/**
 * Draws a translation into a container. `chosen(place)` is called for a click, Enter or Space on a word, `passed(place)`
 * while the pointer or focus is on one, `left()` when it is not; a place is {sentence, word}.
 */
export class Written {
  constructor(container, { chosen, passed, left }) {
    this.container = container;
    this.words = [];
    container.addEventListener("click", (event) => {
      const selecting = String(document.getSelection()).length > 0; // someone copies a part: that is no click
      const word = event.target.closest(".word");
      if (word && !selecting) chosen(this.placeOf(word));
    });
    container.addEventListener("keydown", (event) => this.pressed(event, chosen));
    container.addEventListener("pointerover", (event) => {
      const word = event.pointerType === "mouse" && event.target.closest(".word");
      if (word) passed(this.placeOf(word));
    });
    container.addEventListener("pointerleave", () => left());
    container.addEventListener("focusin", (event) => {
      this.rove(event.target);
      if (event.target.matches(".word:focus-visible")) passed(this.placeOf(event.target));
    });
    container.addEventListener("focusout", () => left());
  }

  /** Draw {before, sentences} anew; a focused word keeps its focus if there is still a word in its place. */
  draw({ before, sentences, direction }) {
    const focused = this.words.indexOf(document.activeElement);
    this.words = [];
    const parts = [before];
    sentences.forEach(({ text, space }, sentence) => {
      let word = 0;
      for (const piece of text.split(/(\s+)/u)) {
        if (!piece.trim()) {
          parts.push(piece);
          continue;
        }
        const made = element("span", { class: "word", role: "button", tabindex: -1, "aria-expanded": "false" }, piece);
        made.dataset.sentence = sentence;
        made.dataset.word = word;
        word += 1;
        parts.push(made);
        this.words.push(made);
      }
      parts.push(space);
    });
    this.container.replaceChildren(...parts);
    if (direction?.target) this.container.lang = direction.target;
    else this.container.removeAttribute("lang");
    if (this.words.length) this.words[0].tabIndex = 0;
    if (focused >= 0) this.words[Math.min(focused, this.words.length - 1)]?.focus();
  }

  /** Mark the word whose panel is open; null for none. */
  mark(place) {
    for (const word of this.words) word.setAttribute("aria-expanded", String(place !== null && word === this.at(place)));
  }

  /** The element of a word, if it is still there. */
  at({ sentence, word }) {
    return this.words.find((each) => Number(each.dataset.sentence) === sentence && Number(each.dataset.word) === word);
  }

  placeOf(word) {
    return { sentence: Number(word.dataset.sentence), word: Number(word.dataset.word) };
  }

  pressed(event, chosen) {
    const here = this.words.indexOf(event.target);
    if (here < 0 || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      chosen(this.placeOf(event.target), true);
      return;
    }
    const onwards = getComputedStyle(this.container).direction === "rtl" ? -1 : 1;
    const steps = { ArrowRight: onwards, ArrowLeft: -onwards, Home: -here, End: this.words.length - 1 - here };
    if (!(event.key in steps)) return;
    event.preventDefault();
    this.words[Math.min(Math.max(here + steps[event.key], 0), this.words.length - 1)].focus();
  }

  /** One word is in the tab order: the one that had focus last. */
  rove(target) {
    if (!target.matches(".word")) return;
    for (const word of this.words) word.tabIndex = word === target ? 0 : -1;
  }
}
