// What the page says when something is not as it should be: what happened, what it does about it, what you can do.

import { isThere } from "./api.js";
import { element } from "./element.js";

const LONGEST_PAUSE = 5; // seconds between two looks whether a server is back
const MOST_TRIES = 5; // by itself: a server that stays busy is left alone
const SHOWN_FOR = 4000; // milliseconds that good news stays

/** An error in a sentence or two. */
export function inWords(error) {
  const advice = {
    gone: "",
    long: "Shorten the text, or translate it as a file.",
    slow: "Try a shorter text.",
    missing: "Choose another model, or reload the page.",
  };
  return [error.message, advice[error.kind]].filter(Boolean).join(" ");
}

/** The place above the panes where one notice stands at a time. `keyGiven(key, forLong)` is called with a key. */
export class Notices {
  constructor(container, keyGiven) {
    this.container = container;
    this.keyGiven = keyGiven;
    this.kind = null;
    this.tries = 0;
  }

  /** Nothing is wrong any more. */
  clear() {
    this.stop();
    this.kind = null;
    this.tries = 0;
    this.container.replaceChildren();
  }

  /** Say what is wrong; where waiting helps, wait and then `again()`. */
  show(error, again) {
    if (error.kind === this.kind && ["key", "long"].includes(error.kind)) return; // said already; a key may be half typed
    this.stop();
    this.kind = error.kind;
    if (error.kind === "gone") this.gone(again);
    else if (error.kind === "busy") this.busy(error, again);
    else if (error.kind === "key") this.key(error);
    else if (error.kind === "long") this.say("long", "status", inWords(error));
    else this.say(error.kind, "alert", inWords(error), button("Try again", again));
  }

  /** Good news, for a moment. */
  cheer(text) {
    this.stop();
    this.kind = "back";
    this.say("back", "status", text);
    this.timer = setTimeout(() => this.clear(), SHOWN_FOR);
  }

  gone(again) {
    const countdown = element("span", { class: "countdown", "aria-hidden": "true" });
    const text = "The server does not answer. Your text is still here; the page goes on when it is back.";
    this.say("gone", "alert", text, countdown);
    const { signal } = (this.controller = new AbortController());
    const look = async (pause) => {
      const back = await isThere(signal);
      if (signal.aborted) return;
      if (back) {
        this.cheer("The server is back.");
        again();
      } else {
        this.count(pause, countdown, () => look(Math.min(2 * pause, LONGEST_PAUSE)));
      }
    };
    this.count(1, countdown, () => look(2));
  }

  busy(error, again) {
    this.tries += 1;
    if (this.tries > MOST_TRIES) {
      this.say("busy", "status", error.message, button("Try again", again));
      return;
    }
    const countdown = element("span", { class: "countdown", "aria-hidden": "true" });
    const text = `${error.message} The page tries again by itself.`;
    this.say("busy", "status", text, countdown, button("Try now", again));
    this.count(error.wait, countdown, again);
  }

  key(error) {
    const field = element("input", { id: "key", type: "password", autocomplete: "off", required: true, spellcheck: "false" });
    const forLong = element("input", { id: "key-for-long", type: "checkbox" });
    const form = element(
      "form",
      { class: "key-form" },
      element("label", { for: "key" }, "Key"),
      field,
      element("button", { type: "submit" }, "Use it"),
      element("label", { class: "tick" }, forLong, "Remember it in this browser"),
    );
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.kind = null;
      this.keyGiven(field.value.trim(), forLong.checked);
    });
    this.say("key", "alert", error.message, form);
    if (document.activeElement === document.body) field.focus(); // nobody is interrupted
  }

  say(kind, role, text, ...more) {
    const words = element("p", { role }, text);
    this.container.replaceChildren(element("div", { class: "notice", "data-kind": kind }, words, ...more));
  }

  /** Count seconds down, then act. */
  count(seconds, countdown, act) {
    countdown.textContent = `${seconds} s`;
    if (seconds <= 0) act();
    else this.timer = setTimeout(() => this.count(seconds - 1, countdown, act), 1000);
  }

  stop() {
    clearTimeout(this.timer);
    this.controller?.abort();
  }
}

function button(text, act) {
  return element("button", { type: "button", onclick: act }, text);
}
