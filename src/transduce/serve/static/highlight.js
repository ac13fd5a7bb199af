// What a word attends to, shown in place: marks under the source words, and threads from pane to pane.

import { element } from "./element.js";

const LEAST_SHARE = 0.15; // of the strongest: fainter marks and threads would only be noise
const STACKED = 704; // pixels below which the panes stand one above the other, as in desk.css

/** The source pane's mirror: the same text behind the textarea, with marks. It also gives the textarea its height. */
export class Mirror {
  constructor(container) {
    this.container = container;
  }

  /** Show the text with marks: [{start, end, strength}] in order, strengths from 0 to 1. */
  draw(text, marks = []) {
    const parts = [];
    let from = 0;
    for (const mark of marks) {
      const made = element("span", { class: "looked-at" }, text.slice(mark.start, mark.end));
      made.style.setProperty("--strength", mark.strength.toFixed(3));
      made.dataset.strength = mark.strength.toFixed(3);
      parts.push(text.slice(from, mark.start), made);
      from = mark.end;
    }
    this.container.replaceChildren(...parts, text.slice(from), "\u200b"); // an empty last line has height, too
  }
}

/** Marks for the places of words: relative to the strongest, so that the picture is readable at any length. */
export function marksFor(places, shares, offset) {
  const strongest = Math.max(...shares.filter((_, index) => places[index]), Number.EPSILON);
  return places
    .map((place, index) => place && { start: offset + place[0], end: offset + place[1], strength: shares[index] / strongest })
    .filter((mark) => mark && mark.strength >= LEAST_SHARE);
}

/** Draw threads from every mark to a word, behind the text; without a word, none. */
export function drawThreads(svg, marks, word) {
  svg.replaceChildren();
  if (!word) return;
  const frame = svg.getBoundingClientRect();
  svg.setAttribute("viewBox", `0 0 ${frame.width} ${frame.height}`);
  const target = word.getClientRects()[0];
  const below = inLowerHalf(word, target);
  for (const mark of marks) {
    const source = mark.getClientRects()[0];
    if (!source || !target) continue;
    const thread = document.createElementNS("http://www.w3.org/2000/svg", "path");
    thread.setAttribute("d", frame.width < STACKED ? straight(source, target, frame) : bow(source, target, frame, below));
    thread.style.setProperty("--strength", mark.dataset.strength);
    svg.append(thread);
  }
}

/** Whether there are fewer lines of text below a word than above it: a bow should cross as few as it can. */
function inLowerHalf(word, rect) {
  const [first, last] = [word.parentElement.firstElementChild, word.parentElement.lastElementChild];
  return rect.top - first.getBoundingClientRect().top > last.getBoundingClientRect().bottom - rect.bottom;
}

/** Side by side, threads go in a bow over or under the words between. */
function bow(source, target, frame, below) {
  const [x0, x1] = [middle(source, frame), middle(target, frame)];
  const [y0, y1] = [source, target].map((rect) => (below ? rect.bottom : rect.top) - frame.top);
  const height = (22 + 0.03 * Math.abs(x1 - x0)) * (below ? -1 : 1);
  return `M${x0} ${y0}C${x0} ${y0 - height} ${x1} ${y1 - height} ${x1} ${y1}`;
}

/** One above the other, they go down. */
function straight(source, target, frame) {
  const [x0, x1] = [middle(source, frame), middle(target, frame)];
  const [y0, y1] = [source.bottom - frame.top, target.top - frame.top];
  const half = (y0 + y1) / 2;
  return `M${x0} ${y0}C${x0} ${half} ${x1} ${half} ${x1} ${y1}`;
}

function middle(rect, frame) {
  return rect.left + rect.width / 2 - frame.left;
}
