// Reading lens data: from subwords, layers and heads to words, and what else could have been written.

const SPECIAL = /^(?:<\/?s>|<2.+>|<pad>)$/;
const BYTE = /^<0x([0-9A-F]{2})>$/;
const MOST_ALTERNATIVES = 5;
const LEAST_PROBABILITY = 0.002;

/** Words and, for each target word, the share of attention on each source word: means of all layers and heads. */
export function wordAttention(data) {
  const { shape, bytes } = data.maps.cross;
  const [layers, heads, rows, columns] = shape;
  const values = Uint8Array.from(atob(bytes), (character) => character.charCodeAt(0));
  const mean = (row, column) => {
    let sum = 0;
    for (let map = 0; map < layers * heads; map += 1) sum += values[(map * rows + row) * columns + column];
    return sum / (255 * layers * heads);
  };
  const source = words(data.source);
  const target = words(data.target).filter(({ special }) => !special);
  const shares = target.map((written) =>
    source.map((read) => {
      let sum = 0;
      for (let row = written.first; row <= written.last; row += 1)
        for (let column = read.first; column <= read.last; column += 1) sum += mean(row, column);
      return sum / (written.last - written.first + 1);
    }),
  );
  return { source, target, shares };
}

/** How sure the model was of a target word: the product of its subwords' probabilities. */
export function probabilityOf(data, word) {
  return data.steps.slice(word.first, word.last + 1).reduce((product, step) => product * step.probability, 1);
}

/**
 * What could stand in a word's place, most probable first: [{text, prefix, probability}]. A word of several subwords
 * can turn at each of them; the prefix is all the text up to there.
 */
export function alternativesTo(data, word) {
  const found = new Map();
  let before = 1;
  for (let place = word.first; place <= word.last; place += 1) {
    const step = data.steps[place];
    for (const { token, probability } of step.alternatives) {
      if (token === step.token || SPECIAL.test(token) || BYTE.test(token)) continue;
      const text = textOfTokens([...data.target.tokens.slice(word.first, place), token]);
      const joint = before * probability;
      if (!text || joint < LEAST_PROBABILITY || joint <= (found.get(text)?.probability ?? 0)) continue;
      const prefix = textOfTokens([...data.target.tokens.slice(0, place), token]);
      found.set(text, { text, prefix, probability: joint });
    }
    before *= step.probability;
  }
  return [...found.values()].sort((a, b) => b.probability - a.probability).slice(0, MOST_ALTERNATIVES);
}

/** The text of subwords as SentencePiece writes them: ▁ is a space, <0xC9> a byte of a letter. */
export function textOfTokens(tokens) {
  const encoder = new TextEncoder();
  const bytes = tokens
    .filter((token) => !SPECIAL.test(token))
    .flatMap((token) => {
      const byte = BYTE.exec(token);
      return byte ? [parseInt(byte[1], 16)] : [...encoder.encode(token.replaceAll("▁", " "))];
    });
  return new TextDecoder().decode(Uint8Array.from(bytes)).trim();
}

/** The number of the target word that holds the word at this place of the written text, counted by its spaces. */
export function targetWordAt(target, text, place) {
  const pieces = text.split(/\s+/u).filter(Boolean);
  const before = pieces.slice(0, place).join("").length;
  let seen = 0;
  const found = target.findIndex((word) => (seen += word.text.replaceAll(/\s/gu, "").length) > before);
  return found < 0 ? target.length - 1 : found;
}

/** Where each source word stands in the sentence as it was typed: [start, end], or null for what is no part of it. */
export function placesOf(source, sentence) {
  const typed = [...sentence.matchAll(/\S+/gu)];
  const real = source.filter(({ special }) => !special);
  let from = 0;
  return source.map((word) => {
    if (word.special) return null;
    if (typed.length === real.length) {
      const match = typed[real.indexOf(word)];
      return [match.index, match.index + match[0].length];
    }
    const start = sentence.indexOf(word.text, from); // the model's spelling may have fewer or more spaces
    if (start < 0) return null;
    from = start + word.text.length;
    return [start, from];
  });
}

function words({ words: listed, tokens }) {
  return listed.map((word) => ({ ...word, special: SPECIAL.test(tokens[word.first]) }));
}
