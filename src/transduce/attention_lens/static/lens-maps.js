// The numbers behind the lens: every layer and head, by words and by subwords, and means of them.

import { KINDS, wording } from "./lens-kinds.js";
import { labelsOf, patchSide, shifted } from "./lens-labels.js";

/** In place of a layer or a head: the mean over all. */
export const MEAN = -1;

export class Maps {
  constructor(data) {
    const source = data.picture ? patchSide(data.grid) : data.source;
    this.sides = {
      cross: { rows: data.target, columns: source },
      encoder: { rows: source, columns: source },
      decoder: { rows: data.target, columns: data.target && shifted(data.target) },
    };
    this.maps = data.maps;
    this.wording = wording(data);
    this.levels = data.picture ? ["subwords"] : ["words", "subwords"];
    this.kept = new Map();
  }

  /** The kinds that there are. */
  get kinds() {
    return KINDS.filter((kind) => this.maps[kind]?.shape[0] > 0);
  }

  layers(kind) {
    return this.maps[kind].shape[0];
  }

  heads(kind) {
    return this.maps[kind].shape[1];
  }

  labels(kind, level) {
    const { rows, columns } = this.sides[kind];
    return this.keep(`labels ${kind} ${level}`, () => ({
      rows: labelsOf(rows, level),
      columns: labelsOf(columns, level),
    }));
  }

  /** One map, row by row; layer or head may be MEAN, and `heads` a list of which the mean is wanted. */
  map(kind, level, layer, heads) {
    const chosen = Array.isArray(heads) ? heads : heads === MEAN ? [...Array(this.heads(kind)).keys()] : [heads];
    return this.keep(`map ${kind} ${level} ${layer} ${chosen}`, () => {
      const layers = layer === MEAN ? [...Array(this.layers(kind)).keys()] : [layer];
      const parts = layers.flatMap((one) => chosen.map((head) => this.head(kind, level, one, head)));
      return parts.length === 1 ? parts[0] : mean(parts);
    });
  }

  head(kind, level, layer, head) {
    const [, heads, rows, columns] = this.maps[kind].shape;
    const size = rows * columns;
    const start = (layer * heads + head) * size;
    const tokens = this.keep(`tokens ${kind}`, () => decoded(this.maps[kind])).subarray(start, start + size);
    if (level === "subwords") return tokens;
    const sides = this.sides[kind];
    return this.keep(`words ${kind} ${layer} ${head}`, () =>
      byWords(tokens, columns, sides.rows.words, sides.columns.words),
    );
  }

  /** The layer that is surest of where to look: the one to begin with. */
  sharpest(kind, level) {
    const columns = this.labels(kind, level).columns.length;
    let best = 0;
    let most = -1;
    for (let layer = 0; layer < this.layers(kind); layer += 1) {
      const map = this.map(kind, level, layer, MEAN);
      let total = 0;
      for (let row = 0; row < map.length; row += columns) total += Math.max(...map.subarray(row, row + columns));
      if (total > most) [best, most] = [layer, total];
    }
    return best;
  }

  keep(name, make) {
    if (!this.kept.has(name)) this.kept.set(name, make());
    return this.kept.get(name);
  }
}

/** The strongest connections of a map in words, for those who do not see it. */
export function strongest(map, { rows, columns }, count = 5) {
  const best = [];
  for (let place = 0; place < map.length; place += 1) {
    if (best.length === count && map[place] <= map[best.at(-1)]) continue;
    best.push(place);
    best.sort((a, b) => map[b] - map[a]);
    best.length = Math.min(best.length, count);
  }
  return best.map((place) => {
    const row = rows[Math.floor(place / columns.length)].text;
    return `${row} to ${columns[place % columns.length].text} ${Math.round(map[place] * 100)} percent`;
  });
}

/** A map of at most `most` rows and columns; each cell is the strongest of those in its place, so that none is lost. */
export function shrunk(map, width, most) {
  const height = map.length / width;
  const size = { width: Math.min(width, most), height: Math.min(height, most) };
  if (size.width === width && size.height === height) return { map, width };
  const small = new Float32Array(size.width * size.height);
  for (let place = 0; place < map.length; place += 1) {
    const x = Math.floor(((place % width) * size.width) / width);
    const y = Math.floor((Math.floor(place / width) * size.height) / height);
    small[y * size.width + x] = Math.max(small[y * size.width + x], map[place]);
  }
  return { map: small, width: size.width };
}

function decoded({ shape, bytes, numbers }) {
  if (bytes === undefined) return Float32Array.from(numbers.flat(3));
  const text = atob(bytes);
  const values = new Float32Array(shape.reduce((product, size) => product * size, 1));
  for (let place = 0; place < values.length; place += 1) values[place] = text.charCodeAt(place) / 255;
  return values;
}

/** The mean over a word's rows, the sum over its columns: rows still sum to one. */
function byWords(tokens, width, rows, columns) {
  const map = new Float32Array(rows.length * columns.length);
  for (const [y, row] of rows.entries()) {
    for (const [x, column] of columns.entries()) {
      let sum = 0;
      for (let t = row.first; t <= row.last; t += 1) {
        for (let s = column.first; s <= column.last; s += 1) sum += tokens[t * width + s];
      }
      map[y * columns.length + x] = sum / (row.last - row.first + 1);
    }
  }
  return map;
}

function mean(parts) {
  const map = new Float32Array(parts[0].length);
  for (const part of parts) for (let place = 0; place < map.length; place += 1) map[place] += part[place];
  return map.map((sum) => sum / parts.length);
}
