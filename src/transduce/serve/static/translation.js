// The text in the left pane and its translation: sentence by sentence, only what is new is asked for.

import { ServerError, translate } from "./api.js";
import { lengthOf, requestsOf, sentencesOf } from "./sentences.js";

const PAUSE = 220; // milliseconds without a key pressed, after which people have paused
const MOST_REMEMBERED = 1000;

/**
 * What is to be translated and what came of it. Events: "change" when `shown`, `working` or `outdated` changed,
 * "trouble" with the error as detail, "fine" when what is shown is what was typed.
 */
export class Translation extends EventTarget {
  constructor() {
    super();
    this.text = "";
    this.direction = null;
    this.options = { beam: 0, alternatives: 3 };
    this.limits = { characters: Infinity, request: 2000, texts: 50 };
    this.shown = { before: "", sentences: [] };
    this.working = false;
    this.outdated = false;
    this.answers = new Map();
    this.choices = new Map();
  }

  /** A new text: translated when typing pauses. */
  write(text) {
    this.text = text;
    this.renew(PAUSE);
  }

  /** Another direction, other options or limits: translated at once. */
  set(changes) {
    Object.assign(this, changes);
    this.renew(0);
  }

  /** Take another of a sentence's alternatives, or begin it with other words: {text} or {prefix}; null takes it back. */
  choose(sentence, choice) {
    if (choice) this.choices.set(this.place(sentence), choice);
    else this.choices.delete(this.place(sentence));
    this.renew(0);
  }

  /** What the user chose for a sentence, or undefined. */
  choiceFor(sentence) {
    return this.choices.get(this.place(sentence));
  }

  /** Translate what has not been yet; what was under way for an earlier text is called off. */
  renew(pause = 0) {
    this.controller?.abort();
    clearTimeout(this.timer);
    this.working = false;
    if (!this.direction) return;
    const { characters } = this.limits;
    if (lengthOf(this.text) > characters) {
      this.trouble(new ServerError("long", `This server takes ${characters.toLocaleString("en")} characters at a time.`));
      return;
    }
    this.cut = sentencesOf(this.text, this.direction.source);
    if (!this.missing().length) {
      this.show();
      return;
    }
    this.working = true;
    this.outdated = this.shown.sentences.length > 0;
    this.changed();
    this.timer = setTimeout(() => this.fetch(), pause);
  }

  /** How a sentence would go on after a prefix; not shown, but remembered in case it is chosen. */
  async preview(sentence, prefix, signal) {
    const key = this.key(sentence, prefix);
    if (!this.answers.has(key)) await this.ask([sentence], prefix, signal);
    return this.answers.get(key);
  }

  async fetch() {
    const controller = new AbortController();
    this.controller = controller;
    try {
      const plain = this.missing().filter((sentence) => !this.prefixFor(sentence));
      for (const texts of requestsOf(plain, this.limits)) await this.ask(texts, "", controller.signal);
      for (const sentence of this.missing()) await this.ask([sentence], this.prefixFor(sentence), controller.signal);
      this.working = false;
      this.show();
    } catch (error) {
      if (controller.signal.aborted) return;
      this.working = false;
      if (!(error instanceof ServerError)) throw error;
      this.trouble(error);
    }
  }

  /** Ask for some sentences and remember the answers. */
  async ask(sentences, prefix, signal) {
    const { model, target } = this.direction;
    const keys = sentences.map((sentence) => this.key(sentence, prefix));
    const request = { q: sentences, model: model.name, n_best: this.wanted() };
    if (target) request.target = target;
    if (prefix) request.prefix = prefix;
    if (this.options.beam) request.beam = this.options.beam;
    const translations = await translate(request, signal);
    if (this.answers.size > MOST_REMEMBERED) this.answers.clear();
    translations.forEach((translation, index) => this.answers.set(keys[index], translation));
  }

  show() {
    let start = this.cut.before.length;
    const sentences = this.cut.sentences.map(({ sentence, space }) => {
      const { text, score, confidence, alternatives, warnings = [] } = this.answerFor(sentence);
      const own = { text, score, confidence };
      const chosen = alternatives.find((each) => each.text === this.choiceFor(sentence)?.text) ?? own;
      const shown = { source: sentence, start, space, ...chosen, alternatives, warnings };
      start += sentence.length + space.length;
      return shown;
    });
    this.shown = { before: this.cut.before, sentences, direction: this.direction };
    this.outdated = false;
    this.changed();
    this.dispatchEvent(new Event("fine"));
  }

  trouble(error) {
    this.outdated = this.shown.sentences.length > 0;
    this.changed();
    this.dispatchEvent(new CustomEvent("trouble", { detail: error }));
  }

  changed() {
    this.dispatchEvent(new Event("change"));
  }

  /** Alternatives to ask for: no more than the beam is wide. */
  wanted() {
    const { beam, alternatives } = this.options;
    return beam ? Math.min(beam, alternatives) : alternatives;
  }

  missing() {
    return [...new Set(this.cut.sentences.map(({ sentence }) => sentence))].filter((each) => !this.answerFor(each));
  }

  answerFor(sentence) {
    return this.answers.get(this.key(sentence, this.prefixFor(sentence)));
  }

  prefixFor(sentence) {
    return this.choiceFor(sentence)?.prefix ?? "";
  }

  key(sentence, prefix) {
    return JSON.stringify([this.place(sentence), this.options.beam, this.wanted(), prefix]);
  }

  place(sentence) {
    return JSON.stringify([this.direction.model.name, this.direction.target, sentence]);
  }
}

/** The whole translation as plain text. */
export function textOf({ before, sentences }) {
  return before + sentences.map(({ text, space }) => text + space).join("");
}
