// What a word attends to, shown in place: marks under the source words, and threads from pane to pane.

import { element } from "./element.js";

const LEAST_SHARE = 0.15; // of the strongest: fainter marks and threads would only be noise

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
  for (const mark of marks) {
    const source = mark.getClientRects()[0];
    if (!source || !target) continue;
    const thread = document.createElementNS("http://www.w3.org/2000/svg", "path");
    thread.setAttribute("d", pathBetween(source, target, frame));
    thread.style.setProperty("--strength", mark.dataset.strength);
    svg.append(thread);
  }
}

/** Side by side, threads leave sideways; one above the other, downwards. */
function pathBetween(source, target, frame) {
  const middle = (rect) => rect.left + rect.width / 2 - frame.left;
  const stacked = target.top > source.bottom + 60 && Math.abs(frame.width - target.left) > 0 && frame.width < 720;
  if (stacked) {
    const [x0, y0, x1, y1] = [middle(source), source.bottom - frame.top, middle(target), target.top - frame.top];
    const half = (y0 + y1) / 2;
    return `M${x0} ${y0}C${x0} ${half} ${x1} ${half} ${x1} ${y1}`;
  }
  const rightwards = source.left < target.left;
  const x0 = (rightwards ? source.right : source.left) - frame.left;
  const x1 = (rightwards ? target.left : target.right) - frame.left;
  const [y0, y1] = [source, target].map((rect) => rect.top + rect.height / 2 - frame.top);
  const half = (x0 + x1) / 2;
  return `M${x0} ${y0}C${half} ${y0} ${half} ${y1} ${x1} ${y1}`;
}
