// Cutting text: into sentences, which a model was trained on, and into requests that a server will take.

const ABBREVIATION = /(?:^|[\s("'„“])(?:\p{Lu}|Mrs?|Ms|Dr|Prof|St|[SJ]r|N[or]|vs|Hr|Fr|Mme|e\.g|i\.e|z\.\s?B|d\.\s?h|bzw|ca)\.\s*$/u;
const ENDED = /[.!?…。！？।॥؟۔።](?:["'”’»)\]]*)\s*$/u;

/** Sentences of a text as [{sentence, space}]; joined again they are the text. Lines are never joined. */
export function sentencesOf(text, language) {
  const found = [];
  let before = "";
  for (const line of text.split(/(?<=\n)/)) {
    for (const piece of pieces(line, language)) {
      const sentence = piece.trim();
      if (!sentence) {
        if (found.length) found.at(-1).space += piece;
        else before += piece;
        continue;
      }
      const start = piece.indexOf(sentence);
      if (found.length) found.at(-1).space += piece.slice(0, start);
      else before += piece.slice(0, start);
      found.push({ sentence, space: piece.slice(start + sentence.length) });
    }
  }
  return { before, sentences: found };
}

/** A line's sentences; what only looks like an end ("Dr. Osei") goes on. */
function pieces(line, language) {
  const cut = [];
  for (const piece of rough(line, language)) {
    const goesOn = cut.length && (ABBREVIATION.test(cut.at(-1)) || !ENDED.test(cut.at(-1)));
    if (goesOn) cut[cut.length - 1] += piece;
    else cut.push(piece);
  }
  return cut;
}

function rough(line, language) {
  if (!("Segmenter" in Intl)) return line.split(/(?<=[.!?…。！？]\s+)/u);
  let segmenter;
  try {
    segmenter = new Intl.Segmenter(language ?? undefined, { granularity: "sentence" });
  } catch {
    segmenter = new Intl.Segmenter(undefined, { granularity: "sentence" });
  }
  return Array.from(segmenter.segment(line), ({ segment }) => segment);
}

/** Characters as the server counts them: an emoji is one, not two. */
export function lengthOf(text) {
  let length = 0;
  for (const _ of text) length += 1;
  return length;
}

/** Lists of texts such that no list has more texts or characters than the server takes in one request. */
export function requestsOf(texts, limits) {
  const requests = [];
  let characters = Infinity;
  for (const text of texts) {
    const length = lengthOf(text);
    if (characters + length > limits.request || requests.at(-1)?.length >= limits.texts) {
      requests.push([]);
      characters = 0;
    }
    requests.at(-1).push(text);
    characters += length;
  }
  return requests;
}
