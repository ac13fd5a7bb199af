// A picture with attention laid over it: the class token looks, or a patch that is pointed at.

import { element, percent, rove } from "./lens-elements.js";
import { verdict } from "./lens-sentences.js";

const THUMB = 64;
/** Pixels that a small picture has at most, down and across. */
const GLOW = [255, 140, 20];
/** The colour of attention; the same in light and dark, because it lies on the picture and not on the page. */
const STRENGTH = 0.82;
/** How much of a pixel that colour takes over where attention is strongest. */
const FLOOR = 0.85;
/** How bright it is where the picture is black. */

export class Picture {
  /** `onPoint(focus)` while a patch is pointed at, null when not; `onPin(focus)` when it is chosen. */
  constructor(maps, data, { onPoint, onPin }) {
    Object.assign(this, { maps, onPoint, onPin, image: new Pixels(data.picture), grid: data.grid });
    this.title = element("h2", "lens-title");
    this.canvas = element("canvas", "lens-picture-canvas", { role: "img" });
    this.readout = element("p", "lens-readout", { "aria-live": "polite" });
    this.most = element("span");
    this.classToken = this.token(0, "lens-button", "Class token");
    this.patches = this.build();
    this.panel = element(
      "section",
      "lens-panel lens-panel-picture",
      { "aria-label": "The picture" },
      element("div", "lens-panel-head", {}, this.title, this.classToken),
      element("div", "lens-picture", {}, this.canvas, this.patches),
      this.readout,
      element(
        "p",
        "lens-picture-legend",
        { "aria-hidden": "true" },
        element("span", "", { text: "0%" }),
        element("span", "lens-picture-scale"),
        this.most,
      ),
    );
  }

  /** A button for each patch, where it lies in the picture. */
  build() {
    const [down, across] = this.grid;
    const places = [...Array(down * across).keys()];
    this.buttons = places.map((place) => {
      const button = this.token(place + 1, "lens-patch");
      const name = this.name(place + 1);
      button.setAttribute("aria-label", name);
      button.title = name;
      return button;
    });
    const group = element("div", "lens-patches", { role: "group", "aria-label": "Patches" }, ...this.buttons);
    group.style.setProperty("--lens-across", across);
    rove(group, this.buttons, (key, place) => {
      const next = { ArrowRight: place + 1, ArrowLeft: place - 1, ArrowDown: place + across, ArrowUp: place - across };
      if (key === "Home" || key === "End") return key === "Home" ? 0 : places.length - 1;
      return next[key] in places ? next[key] : undefined;
    });
    return group;
  }

  token(index, className, text) {
    const focus = { side: "rows", index };
    return element("button", className, {
      type: "button",
      text,
      "aria-pressed": "false",
      "data-index": index,
      onpointerenter: () => this.onPoint(focus),
      onpointerleave: () => this.onPoint(null),
      onfocus: (event) => event.target.matches(":focus-visible") && this.onPoint(focus),
      onblur: () => this.onPoint(null),
      onclick: () => this.onPin(focus),
    });
  }

  draw(view) {
    this.point(view);
  }

  /** Lay the attention of the token that is pointed at over the picture; else that of the class token. */
  point(view) {
    const { kind, level, layer, heads, focus, pinned } = view;
    const looks = focus?.index ?? 0;
    const row = heads.size ? rowOf(this.maps, kind, level, layer, [...heads], looks) : null;
    const shares = row ? row.subarray(1) : new Float32Array(this.buttons.length);
    this.image.paint(this.canvas, this.grid, shares);
    this.title.textContent = `Where ${looks ? this.name(looks).toLowerCase() : "the class token"} looks`;
    this.most.textContent = percent(Math.max(...shares));
    this.readout.textContent = row ? this.words(row, looks, focus?.other) : "No head is on.";
    this.canvas.setAttribute("aria-label", `The picture. ${this.readout.textContent}`);
    this.classToken.setAttribute("aria-pressed", String(looks === 0));
    for (const [place, button] of this.buttons.entries()) {
      button.classList.toggle("lens-here", looks === place + 1);
      button.classList.toggle("lens-there", focus?.other === place + 1);
      button.setAttribute("aria-pressed", String(pinned?.index === place + 1));
    }
  }

  /** The patches that are looked at most, and the one that is pointed at in the map. */
  words(row, looks, other) {
    const found = [...row.keys()].sort((a, b) => row[b] - row[a]).slice(0, 3);
    const wanted = other === undefined || found.includes(other) ? found : [...found, other];
    const parts = wanted.map((place) => `${place === looks ? "itself" : this.name(place).toLowerCase()} ${percent(row[place])}`);
    return `Looks most at ${parts.join("; ")}.`;
  }

  name(token) {
    if (token === 0) return "Class token";
    const across = this.grid[1];
    return `Row ${Math.floor((token - 1) / across) + 1}, column ${((token - 1) % across) + 1}`;
  }
}

/** What the picture is called, and what the model says that it shows. */
export function caption({ title }, answers) {
  const name = [element("span", "lens-language", { text: "picture" }), element("p", "lens-sentence", { text: title })];
  const said = answers.whole.flatMap(verdict);
  return element("section", "lens-sentences", { "aria-label": "Picture and label" }, ...name, ...said);
}

/** What paints a small picture for each head: where the token that is pointed at looks. */
export function thumbs(maps, { picture, grid }) {
  const image = new Pixels(picture).smaller(THUMB);
  return (canvas, { kind, level, focus }, layer, head) =>
    image.paint(canvas, grid, rowOf(maps, kind, level, layer, head, focus?.index ?? 0).subarray(1));
}

/** The shares of one token that looks. */
function rowOf(maps, kind, level, layer, heads, looks) {
  const width = maps.labels(kind, level).columns.length;
  return maps.map(kind, level, layer, heads).subarray(looks * width, (looks + 1) * width);
}

/** Pixels as [red, green, blue] from 0 to 255, whatever the picture came as. */
class Pixels {
  constructor({ shape, bytes, numbers }) {
    [this.height, this.width] = shape;
    const channels = shape[2] ?? 1;
    const text = bytes === undefined ? null : atob(bytes);
    const values = text ? Uint8Array.from(text, (one) => one.charCodeAt(0)) : Uint8Array.from(numbers.flat(2));
    this.at = (x, y, channel) => values[(y * this.width + x) * channels + Math.min(channel, channels - 1)];
  }

  /** The same with fewer pixels. */
  smaller(most) {
    const step = Math.ceil(Math.max(this.height, this.width) / most);
    if (step === 1) return this;
    const made = Object.create(Pixels.prototype);
    made.height = Math.floor(this.height / step);
    made.width = Math.floor(this.width / step);
    made.at = (x, y, channel) => this.at(x * step, y * step, channel);
    return made;
  }

  /** Paint the picture, each patch the more in the colour of attention the more it is looked at. */
  paint(canvas, [down, across], shares) {
    const { width, height } = this;
    const most = Math.max(...shares) || 1;
    canvas.width = width;
    canvas.height = height;
    const image = new ImageData(width, height);
    for (let y = 0; y < height; y += 1) {
      const row = Math.floor((y * down) / height) * across;
      for (let x = 0; x < width; x += 1) {
        const rgb = [0, 1, 2].map((channel) => this.at(x, y, channel));
        const light = FLOOR + ((1 - FLOOR) * (rgb[0] + rgb[1] + rgb[2])) / (3 * 255);
        const share = (STRENGTH * shares[row + Math.floor((x * across) / width)]) / most;
        const mixed = rgb.map((value, channel) => value * (1 - share) + GLOW[channel] * light * share);
        image.data.set([...mixed, 255], (y * width + x) * 4);
      }
    }
    canvas.getContext("2d").putImageData(image, 0, 0);
  }
}
