// A text file and its translation: lines stay lines, line ends stay what they were.

import { translate } from "./api.js";
import { isDoubtful } from "./confidence.js";
import { lengthOf, requestsOf } from "./sentences.js";

const MOST_TRIES = 100; // of one request: a server that is away comes back within minutes, or not at all

/** A file that cannot be translated, and why. */
export class FileError extends Error {}

/** The lines of a file: {lines, ends}; ends are "\n", "\r\n" or nothing, one for each line. */
export async function readLines(file) {
  let text;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(await file.arrayBuffer());
  } catch (error) {
    if (!(error instanceof TypeError)) throw new FileError(`${file.name} could not be read.`);
    throw new FileError(`${file.name} is not UTF-8 text. Save it as UTF-8 in the program that made it, and try again.`);
  }
  if (text.includes("\0")) throw new FileError(`${file.name} is not a text file.`);
  if (!text.trim()) throw new FileError(`${file.name} is empty.`);
  const pieces = text.split(/(\r\n|\n|\r)/);
  const lines = pieces.filter((_, index) => index % 2 === 0);
  const ends = lines.map((_, index) => pieces[2 * index + 1] ?? "");
  if (lines.at(-1) === "") {
    lines.pop();
    ends.pop();
  }
  return { lines, ends };
}

/** Complain of the first line that the server would not take. */
export function checkLines(lines, limits) {
  const place = lines.findIndex((line) => lengthOf(line) > limits.characters);
  if (place < 0) return;
  const [number, length, most] = [place + 1, lengthOf(lines[place]), limits.characters].map((each) => each.toLocaleString("en"));
  throw new FileError(`Line ${number} has ${length} characters; this server takes ${most} at a time. Put line breaks into it.`);
}

/**
 * Translate lines, a request at a time: `done(lines so far)` reports, `trouble(error)` resolves when it is worth trying
 * again, or throws. Gives {translated, doubtful}: the lines, and the numbers of those that a reader should look at.
 */
export async function translateLines(lines, direction, limits, { signal, done, trouble }) {
  const translated = lines.map(() => "");
  const doubtful = [];
  const wanted = lines.flatMap((line, index) => (line.trim() ? [index] : []));
  let next = 0;
  for (const texts of requestsOf(wanted.map((index) => lines[index]), limits)) {
    const answers = await persistently(() => ask(texts, direction, signal), signal, trouble);
    for (const answer of answers) {
      translated[wanted[next]] = answer.text;
      if (isDoubtful(answer)) doubtful.push(wanted[next] + 1);
      next += 1;
    }
    done(next < wanted.length ? wanted[next] : lines.length, translated);
  }
  return { translated, doubtful };
}

function ask(texts, direction, signal) {
  const request = { q: texts, model: direction.model.name };
  if (direction.target) request.target = direction.target;
  return translate(request, signal);
}

async function persistently(attempt, signal, trouble) {
  for (let tries = 1; ; tries += 1) {
    try {
      return await attempt();
    } catch (error) {
      if (signal.aborted || tries === MOST_TRIES) throw error;
      await trouble(error);
    }
  }
}

/** What the translation of a file is called: notes.txt becomes notes.de.txt, notes.en becomes notes.de. */
export function translatedName(name, { source, target }) {
  const language = target ?? "translated";
  const dot = name.lastIndexOf(".");
  const [stem, ending] = dot > 0 ? [name.slice(0, dot), name.slice(dot)] : [name, ".txt"];
  return ending === `.${source}` ? `${stem}.${language}` : `${stem}.${language}${ending}`;
}
