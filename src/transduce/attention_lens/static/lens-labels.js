// What tokens and words are called on the page, in any script.

import { element } from "./lens-elements.js";

const SPECIAL = {
  "<s>": "start",
  "</s>": "end",
  "<unk>": "unknown",
  "<mask>": "mask",
  "<class>": "class",
  "\n": "↵",
  "<0x0A>": "↵",
};
const SPACE = "▁";

/** The labels of one side of a map: {text, mark, special, spaced, newline, first, last} for each word or subword. */
export function labelsOf(side, level) {
  const units = level === "words" ? side.words : side.tokens.map((token, place) => ({ first: place, last: place }));
  return units.map(({ text, first, last }) => {
    const piece = pieceLabel(side.tokens[first]);
    const newline = piece.text === SPECIAL["\n"];
    const place = { spaced: piece.mark || (piece.special && !newline), newline, first, last };
    if (level === "subwords" || (piece.special && first === last)) return { ...piece, ...place };
    return { text: whole(text), mark: false, special: false, ...place };
  });
}

/** What the decoder has read while it writes a side's tokens: the start, and all but the last. */
export function shifted(side) {
  const last = side.tokens.length - 2;
  const words = side.words.filter((word) => word.first <= last);
  return {
    text: side.text,
    tokens: ["<s>", ...side.tokens.slice(0, -1)],
    words: [
      { text: "start", first: 0, last: 0 },
      ...words.map((word) => ({ text: word.text, first: word.first + 1, last: Math.min(word.last, last) + 1 })),
    ],
  };
}

/** The tokens of a picture: one that stands for the whole, then the patches row by row. */
export function patchSide([down, across]) {
  const patches = Array.from({ length: down * across }, (_, place) => [Math.floor(place / across), place % across]);
  return { text: "", tokens: ["<class>", ...patches.map(([row, column]) => `${row + 1},${column + 1}`)], words: [] };
}

/** How a piece is shown: special ones by name, bytes as numbers, a space as a faint mark. */
export function pieceLabel(token) {
  const tag = /^<2(.+)>$/u.exec(token);
  if (tag) return { text: `to ${tag[1]}`, mark: false, special: true };
  if (token in SPECIAL) return { text: SPECIAL[token], mark: false, special: true };
  const byte = /^<0x([0-9A-F]{2})>$/u.exec(token);
  if (byte) return { text: `0x${byte[1]}`, mark: false, special: true };
  const mark = token.startsWith(SPACE);
  return { text: whole(mark ? token.slice(1) : token), mark, special: false };
}

/** A label as an element that keeps its own direction, whatever stands around it. */
export function labelNode({ text, mark, special }, className = "lens-label") {
  const node = element("bdi", special ? `${className} lens-special` : className, { dir: "auto" });
  if (mark && text) node.append(element("span", "lens-mark", { text: SPACE, "aria-hidden": "true" }));
  node.append(text || SPACE);
  return node;
}

/** A piece that begins with a combining mark gets something to combine with. */
function whole(text) {
  return /^\p{M}/u.test(text) ? `◌${text}` : text;
}
