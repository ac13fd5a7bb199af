// The File tab: choose or drop a text file, watch it being translated, download the result.

import { ServerError } from "./api.js";
import { element } from "./element.js";
import { inWords } from "./notices.js";
import { FileError, checkLines, readLines, translateLines, translatedName } from "./text-file.js";

const SHOWN_LINES = 8; // four of the file, and four translated
const NAMED_LINES = 12;

export class FileTab {
  /** `situation()` gives {direction, limits} as they are; `keyWanted(error)` resolves when the user gave a key. */
  constructor(container, { situation, keyWanted }) {
    Object.assign(this, { container, situation, keyWanted });
    this.input = element("input", { type: "file", id: "file", accept: "text/plain,.txt,.csv,.md,.srt", class: "unseen" });
    this.input.addEventListener("change", () => this.take(this.input.files[0]));
    const label = element("label", { class: "drop", for: "file" }, element("b", {}, "Choose a text file"), " or drop one here");
    const hint = element("p", { class: "fine-print" }, "UTF-8, translated line by line. Line n stays line n.");
    this.drop = element("div", { class: "drop-zone" }, this.input, label, hint);
    this.work = element("div", { class: "file-work" });
    container.append(this.drop, this.work);
    for (const name of ["dragover", "dragleave", "drop"]) container.addEventListener(name, (event) => this.dragged(event));
  }

  dragged(event) {
    event.preventDefault();
    this.drop.classList.toggle("over", event.type === "dragover");
    if (event.type === "drop") this.take(event.dataTransfer.files[0]);
  }

  async take(file) {
    if (!file) return;
    this.controller?.abort();
    const controller = new AbortController();
    this.controller = controller;
    this.input.value = ""; // so that the same file can be chosen again
    const { direction, limits } = this.situation();
    const stay = (event) => event.preventDefault(); // whoever closes the page now loses what is done
    if (!direction) {
      this.say("alert", "The server has not answered yet. Try again in a moment.");
      return;
    }
    try {
      const { lines, ends } = await readLines(file);
      checkLines(lines, limits);
      this.begin(file, lines);
      window.addEventListener("beforeunload", stay);
      const result = await translateLines(lines, direction, limits, {
        signal: controller.signal,
        done: this.progressed(lines, direction),
        trouble: (error) => this.wait(error),
      });
      this.finish(file, result, ends, direction);
    } catch (error) {
      if (controller !== this.controller) return;
      if (controller.signal.aborted) this.say("status", `${file.name}: cancelled.`);
      else if (error instanceof FileError) this.say("alert", error.message);
      else if (error instanceof ServerError) this.say("alert", inWords(error), again(() => this.take(file)));
      else throw error;
    } finally {
      window.removeEventListener("beforeunload", stay);
    }
  }

  begin(file, lines) {
    this.progress = element("progress", { max: lines.length, value: 0, "aria-labelledby": "file-name" });
    this.count = element("span", { class: "number" }, `0 of ${lines.length.toLocaleString("en")} lines`);
    this.status = element("p", { class: "fine-print", role: "status" });
    this.cancel = element("button", { type: "button", class: "quiet", onclick: () => this.controller.abort() }, "Cancel");
    this.sample = element("div", { class: "sample" });
    const head = element("div", { class: "panel-head" }, element("h3", { id: "file-name" }, file.name), this.cancel);
    const card = element("div", { class: "file-card sheet" }, head, this.progress, this.count, this.status, this.sample);
    this.work.replaceChildren(card);
  }

  /** Reports progress, with the time that is left once it can be told. */
  progressed(lines, direction) {
    const began = performance.now();
    return (place, translated) => {
      this.progress.value = place;
      const left = ((performance.now() - began) / 1000) * (lines.length / place - 1);
      const time = place < lines.length ? `, ${duration(left)} left` : "";
      this.count.textContent = `${place.toLocaleString("en")} of ${lines.length.toLocaleString("en")} lines${time}`;
      this.status.textContent = "";
      const shown = [];
      for (let line = place - 1; line >= 0 && shown.length < SHOWN_LINES; line -= 1)
        if (lines[line].trim()) shown.unshift([lines[line], direction.source], [translated[line], direction.target]);
      this.sample.replaceChildren(...shown.map(([text, lang]) => element("p", { dir: "auto", lang }, text)));
    };
  }

  /** Wait until it is worth trying again; what waiting cannot cure is thrown. */
  async wait(error) {
    if (error.kind === "key") {
      await this.keyWanted(error);
      return;
    }
    if (error.kind !== "busy" && error.kind !== "gone") throw error;
    const { signal } = this.controller;
    this.status.textContent = `${error.message} Goes on in ${error.wait} s.`;
    await new Promise((resolve, reject) => {
      const timer = setTimeout(resolve, 1000 * error.wait);
      signal.addEventListener("abort", () => (clearTimeout(timer), reject(signal.reason)), { once: true });
    });
    this.status.textContent = "Trying again…";
  }

  finish(file, { translated, doubtful }, ends, direction) {
    URL.revokeObjectURL(this.link);
    const text = translated.map((line, index) => line + ends[index]).join("");
    this.link = URL.createObjectURL(new Blob([text], { type: "text/plain;charset=utf-8" }));
    const name = translatedName(file.name, direction);
    this.cancel.remove();
    this.status.textContent = `Done.${toLookAt(doubtful)}`;
    const download = element("a", { class: "download", href: this.link, download: name }, `Download ${name}`);
    this.status.after(download);
    if (this.container.contains(document.activeElement) || document.activeElement === document.body) download.focus();
  }

  say(role, text, ...more) {
    this.work.replaceChildren(element("div", { class: "file-card sheet" }, element("p", { role }, text), ...more));
  }
}

function again(act) {
  return element("button", { type: "button", class: "quiet", onclick: act }, "Try again");
}

/** Which lines the model is not sure of, in words; nothing where it is of all. */
function toLookAt(numbers) {
  if (!numbers.length) return "";
  const named = numbers.slice(0, NAMED_LINES).map((number) => number.toLocaleString("en"));
  const rest = numbers.length - named.length;
  const more = rest ? ` and ${rest.toLocaleString("en")} more` : "";
  return ` Worth a look: ${numbers.length > 1 ? "lines" : "line"} ${named.join(", ")}${more}.`;
}

function duration(seconds) {
  if (seconds < 90) return `${Math.max(1, Math.round(seconds))} s`;
  return `${Math.round(seconds / 60)} minutes`;
}
