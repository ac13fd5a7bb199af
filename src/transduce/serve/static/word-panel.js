// What is known of one written word: where it looked, how sure it was, and what else it could have been.

import { alternativesTo, probabilityOf } from "./attention.js";
import { element } from "./element.js";
import { inWords } from "./notices.js";

const MOST_SOURCES = 4;

/** The panel under the panes. `closed()`, `chosen(alternative)` and `preview(alternative, signal)` are the page's. */
export class WordPanel {
  constructor(container, { closed, chosen, preview }) {
    Object.assign(this, { container, closed, chosen, preview });
  }

  hide() {
    this.controller?.abort();
    this.container.hidden = true;
    this.container.replaceChildren();
  }

  /** While the server looks, the panel already says for which word. */
  showWaiting(text) {
    this.open(text, element("p", { class: "waiting", role: "status" }, "Looking…"));
  }

  /** It could not be found out: why, and a way to try again. */
  showTrouble(text, error, again) {
    const retry = element("button", { type: "button", class: "quiet", onclick: again }, "Try again");
    this.open(text, element("p", { class: "trouble", role: "alert" }, inWords(error)), retry);
  }

  /** Everything about a word: `attention` are words and shares, `data` the lens data, `place` the word's number. */
  show(text, data, attention, place) {
    const word = attention.target[place];
    const sure = element("p", { class: "sure" }, "Probability ", element("b", {}, percent(probabilityOf(data, word))));
    const languages = { source: data.source_language, target: data.target_language };
    const choices = alternativesTo(data, word).map((alternative) => this.choice(alternative, languages.target));
    this.open(text, sure, this.lookedAt(attention, place, languages), this.couldBe(choices));
    this.fillPreviews(choices, this.controller.signal);
  }

  open(text, ...parts) {
    this.controller?.abort();
    this.controller = new AbortController();
    const title = element("h3", { id: "word-title", dir: "auto" }, text);
    const close = element("button", { type: "button", class: "close", "aria-label": "Close", onclick: this.closed }, "×");
    this.container.replaceChildren(element("div", { class: "panel-head" }, title, close), ...parts);
    this.container.hidden = false;
  }

  lookedAt({ source, shares }, place, languages) {
    const ranked = source
      .map((word, index) => ({ word, share: shares[place][index] }))
      .sort((a, b) => b.share - a.share)
      .slice(0, MOST_SOURCES);
    const strongest = ranked[0]?.share || 1;
    const rows = ranked.map(({ word, share }) => {
      const bar = element("span", { class: "bar", "aria-hidden": "true" });
      bar.style.setProperty("--share", (share / strongest).toFixed(3));
      const name = word.special ? element("i", {}, specialName(word)) : element("bdi", { lang: languages.source }, word.text);
      return element("li", {}, name, bar, element("span", { class: "number" }, percent(share)));
    });
    return element(
      "div",
      { class: "looked" },
      element("h4", {}, "Looked at"),
      element("ol", { class: "shares" }, ...rows),
      element("p", { class: "fine-print" }, "Cross-attention, mean of all layers and heads"),
    );
  }

  couldBe(choices) {
    const heading = element("h4", {}, "Could also be");
    if (!choices.length) return element("div", {}, heading, element("p", { class: "fine-print" }, "Nothing likely."));
    return element("div", {}, heading, element("ul", { class: "alternatives" }, ...choices.map(({ item }) => item)));
  }

  choice(alternative, lang) {
    const rest = element("span", { class: "rest", dir: "auto", lang });
    const wording = element("bdi", { class: "wording", lang }, `${alternative.text}…`);
    const button = element(
      "button",
      { type: "button", class: "alternative", onclick: () => this.chosen(alternative) },
      wording,
      element("span", { class: "number" }, percent(alternative.probability)),
      rest,
    );
    return { item: element("li", {}, button), wording, rest, alternative };
  }

  /** Say which sentence each alternative leads to, one after the other; a busy server is spared. */
  async fillPreviews(choices, signal) {
    for (const { wording, rest, alternative } of choices) {
      try {
        const { text } = await this.preview(alternative, signal);
        wording.textContent = wholeWord(alternative, text);
        rest.textContent = text;
      } catch {
        return;
      }
    }
  }
}

/** A subword, and what the model made of it. */
function wholeWord({ text, prefix }, translation) {
  return translation.startsWith(prefix) ? text + /^\S*/u.exec(translation.slice(prefix.length))[0] : text;
}

function specialName({ text }) {
  return text === "end" ? "end of sentence" : text;
}

/** 0.834 is 83%, 0.0041 is 0.4%. */
function percent(share) {
  const number = 100 * share;
  return `${number >= 1 || number === 0 ? Math.round(number) : number.toFixed(1)}%`;
}
