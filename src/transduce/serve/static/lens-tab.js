// The Lens tab: every layer and head of one sentence.

import { ServerError } from "./api.js";
import { textOfTokens } from "./attention.js";
import { element } from "./element.js";
import { inWords } from "./notices.js";

export class LensTab {
  /** `look(sentence, signal)` gives the lens data of a shown sentence; `begin(sentence, prefix)` has it begin otherwise. */
  constructor(container, { look, begin }) {
    Object.assign(this, { container, look, begin, sentences: [], place: 0, drawn: null });
    this.chooser = element("select", { id: "lens-sentence" });
    this.chooser.addEventListener("change", () => {
      this.place = this.chooser.selectedIndex;
      this.draw();
    });
    const name = element("span", { class: "label" }, "Sentence");
    this.choice = element("label", { class: "chooser sentence-choice", hidden: true }, name, this.chooser);
    this.stage = element("div", { class: "stage" });
    container.append(this.choice, this.stage);
  }

  /** The sentences that are shown now; drawn only when the tab is open. */
  offer(sentences, open) {
    this.sentences = sentences;
    this.place = Math.min(this.place, Math.max(sentences.length - 1, 0));
    const options = sentences.map(({ source }, index) => new Option(shortened(source), index, false, index === this.place));
    this.chooser.replaceChildren(...options);
    this.choice.hidden = sentences.length < 2;
    if (open) this.draw();
  }

  async draw() {
    const sentence = this.sentences[this.place];
    const wanted = sentence ? `${sentence.source}\n${sentence.text}` : "";
    if (this.drawn === wanted) return;
    this.controller?.abort();
    const { signal } = (this.controller = new AbortController());
    this.drawn = wanted;
    if (!sentence) {
      this.say(element("p", { class: "empty" }, "Write something under Text first: the lens shows how it was translated."));
      return;
    }
    const waiting = setTimeout(() => this.say(element("p", { class: "waiting", role: "status" }, "Looking…")), 150);
    try {
      const [{ mountLens }, data] = await Promise.all([import("./lens.js"), this.look(sentence, signal)]);
      clearTimeout(waiting);
      if (signal.aborted) return;
      this.mounted?.destroy();
      this.stage.replaceChildren();
      const onAlternative = (prefix, token) => this.begin(sentence, textOfTokens([...prefix, token]));
      this.mounted = mountLens(this.stage, data, { onAlternative });
    } catch (error) {
      clearTimeout(waiting);
      if (signal.aborted) return;
      this.drawn = null;
      if (!(error instanceof ServerError)) console.error(error);
      const again = element("button", { type: "button", class: "quiet", onclick: () => this.draw() }, "Try again");
      this.say(element("p", { class: "trouble", role: "alert" }, inWords(error)), again);
    }
  }

  say(...parts) {
    this.mounted?.destroy();
    this.mounted = null;
    this.stage.replaceChildren(...parts);
  }
}

function shortened(text) {
  return text.length > 80 ? `${text.slice(0, 79)}…` : text;
}
