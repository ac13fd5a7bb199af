// What the model looked at, asked for once a sentence: the first look wakes the model up, later ones are quick.

import { readAttention } from "./api.js";
import { wordAttention } from "./attention.js";

const MOST_REMEMBERED = 50;

/** Lens data of shown sentences, remembered. */
export class Looks {
  constructor() {
    this.found = new Map();
  }

  /** What is known of a sentence already: {data, words}, or undefined. */
  known(sentence, direction) {
    return this.found.get(key(sentence, direction));
  }

  /** The same, asked for if need be. */
  async of(sentence, direction, signal) {
    const place = key(sentence, direction);
    if (!this.found.has(place)) {
      const request = { q: sentence.source, model: direction.model.name, translation: sentence.text };
      if (direction.target) request.target = direction.target;
      const data = await readAttention(request, signal);
      if (this.found.size >= MOST_REMEMBERED) this.found.clear();
      this.found.set(place, { data, words: wordAttention(data) });
    }
    return this.found.get(place);
  }
}

function key({ source, text }, { model, target }) {
  return JSON.stringify([model.name, target, source, text]);
}
