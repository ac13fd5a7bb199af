// Lines between two sentences, as in the paper's appendix: what is looked at on the left, who looks on the right.

import { headColour } from "./lens-colours.js";
import { element, percent, rove } from "./lens-elements.js";
import { labelNode } from "./lens-labels.js";

const FAINTEST = { all: 0.12, one: 0.02 };
/** Shares below these draw no line: at rest, and of the word that is pointed at. */
const ROOM = 480;
/** Pixels that a short sentence spreads over. */
const LONGEST_CANVAS = 16000;

export class Lines {
  /** `onPoint(focus)` while a word is pointed at, null when not; `onPin(focus)` when it is chosen. */
  constructor(maps, { onPoint, onPin }) {
    Object.assign(this, { maps, onPoint, onPin });
    this.canvas = element("canvas", "lens-lines-canvas", { role: "img" });
    this.names = [element("h3", "lens-side"), element("h3", "lens-side")];
    this.body = element("div", "lens-lines");
    this.readout = element("p", "lens-readout", { "aria-live": "polite" });
    this.panel = element(
      "section",
      "lens-panel lens-panel-lines",
      { "aria-label": "Connections" },
      element("h2", "lens-title", { text: "Connections" }),
      element("div", "lens-lines-scroll", {}, this.body),
      this.readout,
    );
    this.observer = new ResizeObserver(() => this.view && this.stroke());
    this.observer.observe(this.body);
  }

  destroy() {
    this.observer.disconnect();
  }

  draw(view, colours) {
    this.view = view;
    this.colours = colours;
    const labels = this.maps.labels(view.kind, view.level);
    const built = `${view.kind} ${view.level}`;
    if (this.built !== built) this.build(labels, this.maps.wording[view.kind].headings);
    this.built = built;
    this.point(view);
  }

  build({ rows, columns }, headings) {
    for (const [place, name] of headings.entries()) this.names[place].textContent = name;
    const longest = Math.max(rows.length, columns.length);
    const height = Math.max(18, Math.min(36, Math.floor(ROOM / longest)));
    this.body.style.setProperty("--lens-word-height", `${height}px`);
    this.body.classList.toggle("lens-lines-dense", height < 24);
    this.height = height;
    this.buttons = {
      columns: columns.map((label, index) => this.word(label, { side: "columns", index })),
      rows: rows.map((label, index) => this.word(label, { side: "rows", index })),
    };
    const groups = ["columns", "rows"].map((side, place) =>
      element(
        "div",
        `lens-words lens-words-${side}`,
        { role: "group", "aria-label": headings[place] },
        ...this.buttons[side],
      ),
    );
    for (const [place, side] of ["columns", "rows"].entries()) {
      const here = this.buttons[side];
      const there = this.buttons[side === "rows" ? "columns" : "rows"];
      rove(groups[place], here, (key, at) => {
        if (key === (side === "rows" ? "ArrowLeft" : "ArrowRight")) there[Math.min(at, there.length - 1)].focus();
        return { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: here.length - 1 }[key];
      });
    }
    this.body.replaceChildren(
      this.names[0],
      element("span", "lens-side"),
      this.names[1],
      groups[0],
      this.canvas,
      groups[1],
    );
  }

  word(label, focus) {
    return element(
      "button",
      "lens-word",
      {
        type: "button",
        "aria-pressed": "false",
        "data-index": focus.index,
        onpointerenter: () => this.onPoint(focus),
        onpointerleave: () => this.onPoint(null),
        onfocus: (event) => event.target.matches(":focus-visible") && this.onPoint(focus),
        onblur: () => this.onPoint(null),
        onclick: () => this.onPin(focus),
      },
      labelNode(label),
    );
  }

  /** Show what the focused word looks at, or who looks at it; without one, everything that is strong. */
  point(view) {
    this.view = view;
    const { focus, pinned } = view;
    for (const side of ["rows", "columns"]) {
      for (const [index, button] of this.buttons[side].entries()) {
        const here = focus?.side === side && focus.index === index;
        button.classList.toggle("lens-here", here);
        button.setAttribute("aria-pressed", String(pinned?.side === side && pinned.index === index));
        const shares = focus && focus.side !== side ? this.shares(index) : null;
        button.style.background = shares ? bars(shares, [...view.heads]) : "";
        button.classList.toggle("lens-away", Boolean(shares) && Math.max(...shares) < 0.05);
      }
    }
    this.readout.replaceChildren(...this.words());
    this.stroke();
  }

  /** The share of each head that is on, between the focused word and the one at `index` across. */
  shares(index) {
    const { kind, level, layer, heads, focus } = this.view;
    const width = this.maps.labels(kind, level).columns.length;
    const place = focus.side === "rows" ? focus.index * width + index : index * width + focus.index;
    return [...heads].map((head) => this.maps.map(kind, level, layer, head)[place]);
  }

  words() {
    const { kind, level, focus, heads } = this.view;
    if (!heads.size) return ["No head is on."];
    if (!focus) return ["Point at a word to see where attention goes."];
    const labels = this.maps.labels(kind, level);
    const others = labels[focus.side === "rows" ? "columns" : "rows"];
    const found = others.map((label, index) => {
      const shares = this.shares(index);
      return [label, shares.reduce((sum, share) => sum + share, 0) / shares.length];
    });
    const best = found.sort((a, b) => b[1] - a[1]).slice(0, 3);
    const name = labelNode(labels[focus.side][focus.index], "lens-strong");
    const verb = focus.side === "rows" ? " looks at " : " is looked at by ";
    return [
      name,
      verb,
      ...best.flatMap(([label, share], rank) => [rank ? ", " : "", labelNode(label), ` ${percent(share)}`]),
    ];
  }

  stroke() {
    const { kind, level, layer, heads, focus } = this.view;
    const { rows, columns } = this.maps.labels(kind, level);
    const width = this.canvas.clientWidth;
    const height = Math.max(rows.length, columns.length) * this.height;
    const ratio = Math.min(devicePixelRatio || 1, LONGEST_CANVAS / height);
    this.canvas.width = Math.max(1, Math.round(width * ratio));
    this.canvas.height = Math.round(height * ratio);
    this.canvas.style.height = `${height}px`;
    const pen = this.canvas.getContext("2d");
    pen.scale(ratio, ratio);
    pen.lineCap = "round";
    const faintest = focus ? FAINTEST.one : FAINTEST.all;
    // Side by side, so that heads which look at the same word are seen apart.
    const apart = Math.min(3, (this.height - 8) / heads.size);
    let drawn = 0;
    for (const [place, head] of [...heads].entries()) {
      const aside = (place - (heads.size - 1) / 2) * apart;
      const map = this.maps.map(kind, level, layer, head);
      pen.strokeStyle = this.colours.heads[head % this.colours.heads.length];
      for (let row = 0; row < rows.length; row += 1) {
        if (focus?.side === "rows" && focus.index !== row) continue;
        for (let column = 0; column < columns.length; column += 1) {
          if (focus?.side === "columns" && focus.index !== column) continue;
          const share = map[row * columns.length + column];
          if (share < faintest) continue;
          this.line(
            pen,
            width,
            [column, row].map((one) => (one + 0.5) * this.height + aside),
            share,
          );
          drawn += 1;
        }
      }
    }
    this.canvas.setAttribute("data-lines", drawn);
    this.canvas.setAttribute("aria-label", `${drawn} lines; ${this.readout.textContent}`);
  }

  line(pen, width, [from, to], share) {
    pen.globalAlpha = this.view.focus ? 0.15 + 0.85 * share : 0.9 * share;
    pen.lineWidth = 0.75 + 2 * share;
    pen.beginPath();
    pen.moveTo(2, from);
    pen.bezierCurveTo(width * 0.45, from, width * 0.55, to, width - 2, to);
    pen.stroke();
  }
}

/** A background with a field for each head, the stronger the more it looks. */
function bars(shares, heads) {
  const part = 100 / shares.length;
  const fields = shares.map((share, place) => {
    const colour = `color-mix(in srgb, ${headColour(heads[place])} ${Math.round(5 + 50 * share)}%, transparent)`;
    return `${share < 0.01 ? "transparent" : colour} ${place * part}% ${(place + 1) * part}%`;
  });
  return `linear-gradient(to right, ${fields.join(", ")})`;
}
