// The Model tab: what a model is, how well it does, and what its makers say of it.

import { nameOf } from "./directions.js";
import { element } from "./element.js";
import { markdown } from "./markdown.js";

const NAMES = { bleu: "BLEU", chrf: "chrF", ter: "TER" };

/** Draw a model's facts, scores and card into a container. */
export function drawCard(container, model) {
  const facts = [
    ["Translates", directionOf(model)],
    ["Parameters", model.parameters?.toLocaleString("en")],
    ...scoresOf(model.scores),
    calibrationOf(model.scores),
  ].filter(([, value]) => value);
  const list = facts.map(([name, value, note]) => fact(name, value, note));
  const written = model.card?.trim() ? markdown(model.card) : [element("p", { class: "empty" }, "Its makers wrote no card.")];
  container.replaceChildren(
    element("h2", { class: "card-name" }, model.name),
    element("dl", { class: "facts" }, ...list),
    element("article", { class: "card", "aria-label": "Model card" }, ...withoutTitle(written, model.name)),
  );
}

function fact(name, value, note) {
  const described = element("dd", {}, value, note ? element("small", {}, note) : null);
  return element("div", {}, element("dt", {}, name), described);
}

function directionOf({ source, targets }) {
  const into = targets.map(nameOf).join(", ");
  if (source && into) return `${nameOf(source)} → ${into}`;
  return into ? `into ${into}` : source ? `from ${nameOf(source)}` : null;
}

/** BLEU, chrF and TER of the test set if there is one, else of the dev set, with their intervals. */
function scoresOf(scores) {
  const set = ["test", "dev"].find((each) => scores?.[each]);
  if (!set) return [];
  const { interval = {}, sentences, ...values } = scores[set];
  const measured = Object.keys(NAMES)
    .filter((name) => typeof values[name] === "number")
    .map((name) => [NAMES[name], values[name].toFixed(1), interval[name]?.map((end) => end.toFixed(1)).join(" to ")]);
  return [...measured, ["Measured on", sentences?.toLocaleString("en"), `${set} sentences`]];
}

/** How far its confidence is off, on the test set if that was measured. */
function calibrationOf(scores) {
  const { error, test } = scores?.calibration ?? {};
  const found = test?.error ?? error;
  if (typeof found !== "number") return [];
  return ["Confidence is off by", found.toFixed(3), `calibration error, ${test ? "test" : "dev"} set`];
}

/** A card begins with its name, which stands above it already. */
function withoutTitle(blocks, name) {
  const [first, ...rest] = blocks;
  return first?.matches("h2") && first.textContent === name ? rest : blocks;
}
