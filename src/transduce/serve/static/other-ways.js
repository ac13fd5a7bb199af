// The other translations that the search found for a sentence, with their scores.

import { element } from "./element.js";

/** List a sentence's alternatives in a language; `chosen(text)` takes one, `reset()` goes back to the model's own. */
export function drawOtherWays(container, sentence, lang, changed, { chosen, reset }) {
  const all = sentence ? [...new Map(sentence.alternatives.map((each) => [each.text, each])).values()] : [];
  container.hidden = all.length < 2 && !changed;
  if (container.hidden) {
    container.replaceChildren();
    return;
  }
  const best = Math.max(...all.map(({ score }) => score));
  const rows = all.map(({ text, score }) => {
    const bar = element("span", { class: "bar", "aria-hidden": "true" });
    bar.style.setProperty("--share", Math.exp(score - best).toFixed(3));
    const button = element(
      "button",
      { type: "button", class: "alternative", "aria-pressed": String(text === sentence.text), onclick: () => chosen(text) },
      element("span", { class: "wording", dir: "auto", lang }, text),
      bar,
      element("span", { class: "number" }, number(score)),
    );
    return element("li", {}, button);
  });
  container.replaceChildren(
    element(
      "div",
      { class: "panel-head" },
      element("h3", { id: "other-ways-title" }, "Other ways to say it"),
      changed ? element("button", { type: "button", class: "quiet", onclick: reset }, "Back to the model’s own") : null,
    ),
    element("ol", { class: "alternatives" }, ...rows),
    element("p", { class: "fine-print" }, "Score: log-probability, divided by a penalty for length. Nearer to 0 is better."),
  );
}

function number(score) {
  return score.toFixed(2).replace("-", "−");
}
