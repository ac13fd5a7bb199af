// The Text tab: what is typed on one side, what is written on the other, and what can be known of each word.

import { placesOf, targetWordAt } from "./attention.js";
import { ConfidenceMark } from "./confidence.js";
import { byId, element } from "./element.js";
import { Mirror, drawThreads, marksFor } from "./highlight.js";
import { drawOtherWays } from "./other-ways.js";
import { lengthOf } from "./sentences.js";
import { textOf } from "./translation.js";
import { WordPanel } from "./word-panel.js";
import { Written } from "./written.js";

const DWELL = 350; // milliseconds on a word after which someone is curious
const MOST_WARNINGS = 3;
const SETTLED = 900; // milliseconds after which a translation is read out

export class Desk {
  /** `translation` is what is shown; `looks` knows what was attended to. */
  constructor(translation, looks) {
    Object.assign(this, { translation, looks, place: null, sentence: 0, marks: [] });
    this.source = byId("source");
    this.mirror = new Mirror(byId("mirror"));
    this.written = new Written(byId("written"), {
      chosen: (place, byKey) => this.openWord(place, byKey),
      passed: (place) => this.pass(place),
      left: () => this.leave(),
    });
    this.confidence = new ConfidenceMark();
    this.panel = new WordPanel(byId("word-panel"), {
      closed: () => this.closeWord(true),
      chosen: ({ prefix }) => this.begin(this.here(), prefix),
      preview: ({ prefix }, signal) => translation.preview(this.here().source, prefix, signal),
    });
    this.source.addEventListener("input", () => this.typed());
    byId("clear").addEventListener("click", () => this.fill(""));
    byId("copy").addEventListener("click", () => this.copy());
    translation.addEventListener("change", () => this.draw());
    translation.addEventListener("fine", () => this.announce());
    byId("view-text").addEventListener("keydown", (event) => {
      if (event.key === "Escape") this.closeWord(byId("word-panel").contains(document.activeElement));
    });
    window.addEventListener("resize", () => this.drawThreads());
    this.typed();
  }

  /** Put a text into the left pane as if it were typed. */
  fill(text) {
    this.source.value = text;
    this.typed();
    this.source.focus();
  }

  typed() {
    this.closeWord();
    this.count();
    this.translation.write(this.source.value);
  }

  /** How long the text is, and how long it may be. */
  count() {
    const { characters } = this.translation.limits;
    const length = lengthOf(this.source.value);
    const limit = Number.isFinite(characters) ? ` / ${characters.toLocaleString("en")}` : "";
    byId("count").textContent = `${length.toLocaleString("en")}${limit}`;
    byId("count").classList.toggle("over", length > characters);
    byId("clear").hidden = !length;
  }

  /** What is shown, whether it is still what was typed, and the other ways to say it. */
  draw() {
    const { shown, working, outdated } = this.translation;
    const container = byId("written");
    if (shown !== this.drawn) {
      this.drawn = shown;
      this.closeWord();
      this.written.draw(shown);
      this.confidence.draw(shown);
      this.drawOtherWays();
      this.drawWarnings();
      byId("findings").hidden = byId("copy").hidden = !shown.sentences.length;
    }
    for (const each of [container, byId("confidence")]) each.classList.toggle("outdated", outdated);
    container.setAttribute("aria-busy", String(working));
    byId("state").textContent = outdated && !working ? "Outdated" : "";
  }

  /** What could not be made good, in the server's words; each only once. */
  drawWarnings() {
    const messages = new Set(this.drawn.sentences.flatMap(({ warnings }) => warnings.map(({ message }) => message)));
    const shown = [...messages].slice(0, MOST_WARNINGS);
    if (messages.size > shown.length) shown.push(`And ${messages.size - shown.length} more like these.`);
    byId("warnings").replaceChildren(...shown.map((message) => element("li", {}, message)));
    byId("warnings").hidden = !shown.length;
  }

  drawOtherWays() {
    const { sentences, direction } = this.translation.shown;
    this.sentence = Math.min(this.sentence, Math.max(sentences.length - 1, 0));
    const sentence = sentences[this.sentence];
    const changed = Boolean(sentence && this.translation.choiceFor(sentence.source));
    drawOtherWays(byId("other-ways"), sentence, direction?.target, changed, {
      chosen: (text) => this.translation.choose(sentence.source, text === sentence.alternatives[0].text ? null : { text }),
      reset: () => this.translation.choose(sentence.source, null),
    });
  }

  /** Have a sentence begin with a prefix; focus stays where it was. */
  begin(sentence, prefix) {
    const { place } = this;
    this.closeWord();
    const refocus = () => document.activeElement === document.body && place && this.written.at(place)?.focus();
    this.translation.addEventListener("fine", refocus, { once: true });
    this.translation.choose(sentence.source, { prefix });
  }

  here() {
    return this.translation.shown.sentences[this.place.sentence];
  }

  async openWord(place, byKey = false) {
    if (this.place && place.sentence === this.place.sentence && place.word === this.place.word) {
      this.closeWord(byKey);
      return;
    }
    this.closeWord();
    this.place = place;
    this.sentence = place.sentence;
    this.drawOtherWays();
    this.written.mark(place);
    const { direction } = this.translation.shown;
    const text = this.written.at(place).textContent;
    const { signal } = (this.controller = new AbortController());
    if (!this.looks.known(this.here(), direction)) this.panel.showWaiting(text);
    try {
      const { data, words } = await this.looks.of(this.here(), direction, signal);
      if (signal.aborted) return;
      this.panel.show(text, data, words, targetWordAt(words.target, this.here().text, place.word));
      this.highlight(place);
    } catch (error) {
      if (signal.aborted) return;
      this.panel.showTrouble(text, error, () => {
        this.place = null;
        this.openWord(place, byKey);
      });
    }
    if (byKey) byId("word-panel").focus();
  }

  closeWord(refocus = false) {
    const word = this.place && this.written.at(this.place);
    this.controller?.abort();
    this.place = null;
    this.panel.hide();
    this.written.mark(null);
    this.highlight(null);
    if (refocus) word?.focus();
  }

  /** The pointer is on a word: show at once what is known, and find out what is not if it stays. */
  pass(place) {
    clearTimeout(this.dwelling);
    const { shown, outdated } = this.translation;
    if (outdated) return;
    const sentence = shown.sentences[place.sentence];
    if (this.looks.known(sentence, shown.direction)) {
      this.highlight(place);
      return;
    }
    this.dwelling = setTimeout(async () => {
      try {
        await this.looks.of(sentence, shown.direction);
      } catch {
        return; // nobody asked for it: whoever clicks is told
      }
      if (shown === this.translation.shown && this.written.at(place)?.matches(":hover, :focus")) this.highlight(place);
    }, DWELL);
  }

  leave() {
    clearTimeout(this.dwelling);
    this.highlight(this.place);
  }

  /** Mark what a word attended to; null takes the marks away. */
  highlight(place) {
    const { shown, outdated } = this.translation;
    const known = place && !outdated && this.looks.known(shown.sentences[place.sentence], shown.direction);
    let marks = [];
    if (known) {
      const { source, start, text } = shown.sentences[place.sentence];
      const { words } = known;
      marks = marksFor(placesOf(words.source, source), words.shares[targetWordAt(words.target, text, place.word)], start);
    }
    this.mirror.draw(this.source.value, marks);
    this.lit = known ? place : null;
    this.drawThreads();
  }

  drawThreads() {
    drawThreads(byId("threads"), byId("mirror").querySelectorAll(".looked-at"), this.lit && this.written.at(this.lit));
  }

  /** Read a translation out to those who cannot see it, once typing has come to rest. */
  announce() {
    clearTimeout(this.announcing);
    this.announcing = setTimeout(() => {
      byId("announcer").textContent = textOf(this.translation.shown);
    }, SETTLED);
  }

  async copy() {
    const text = textOf(this.translation.shown);
    const button = byId("copy");
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      document.getSelection().selectAllChildren(byId("written")); // without https, browsers still let people copy by hand
      if (!document.execCommand("copy")) return;
    }
    button.textContent = "Copied";
    clearTimeout(this.copied);
    this.copied = setTimeout(() => (button.textContent = "Copy"), 2000);
  }
}
