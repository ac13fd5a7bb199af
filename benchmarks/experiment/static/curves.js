// Curves of all runs over a common axis: what is shown is a choice of score, axis, seeds and variants.

const variants = JSON.parse(document.getElementById("data").textContent);
const chart = document.getElementById("chart");
const COLOURS = 8;
const HEIGHT = 430, LEFT = 46, RIGHT = 14, TOP = 14, BOTTOM = 42;
const SCORES = { bleu: "BLEU", chrf: "chrF", perplexity: "Perplexity" };
const AXES = { minutes: "minutes of training", step: "steps" };
const SMALLER_IS_BETTER = new Set(["perplexity"]);

const choice = { score: "bleu", axis: "minutes", seeds: "each", range: "whole" };
const hidden = new Set();
let pointedAt = null;

function element(name, attributes = {}, ...children) {
  const svg = ["svg", "g", "line", "path", "text", "circle", "clipPath", "rect"].includes(name);
  const made = svg ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

const number = (value, digits = 0) =>
  (value || 0).toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });

/** The first variant has the colour of ink; where colours come round again, lines are dashed. */
function strokeOf(index) {
  const colour = index === 0 ? 0 : ((index - 1) % COLOURS) + 1;
  const dashes = ["none", "7 4", "2 3"][Math.floor(Math.max(0, index - 1) / COLOURS) % 3];
  return { stroke: `var(--curve-${colour})`, "stroke-dasharray": dashes };
}

/** The curves to draw: one a run, or one a variant with the span of its seeds. */
function lines() {
  const { score, axis, seeds } = choice;
  const shown = variants.map((variant, index) => ({ variant, index })).filter(({ index }) => !hidden.has(index));
  return shown.flatMap(({ variant, index }) => {
    if (seeds === "each" || variant.runs.length < 2) {
      return variant.runs.map((run) => ({
        index,
        name: `${variant.name}, seed ${run.seed}`,
        points: run.points.map((point) => ({ x: point[axis], y: point[score], point })),
      }));
    }
    const steps = variant.runs[0].points.map((point) => point.step);
    const points = steps.flatMap((step) => {
      const there = variant.runs.flatMap((run) => run.points.filter((point) => point.step === step));
      if (there.length < variant.runs.length) return [];
      const mean = (key) => there.reduce((sum, point) => sum + point[key], 0) / there.length;
      const values = there.map((point) => point[score]);
      const point = { step, minutes: mean("minutes"), [score]: mean(score) };
      return [{ x: point[axis], y: point[score], low: Math.min(...values), high: Math.max(...values), point }];
    });
    return [{ index, name: `${variant.name}, mean of ${variant.runs.length} seeds`, points }];
  }).filter((line) => line.points.length);
}

function ticks(low, high, most) {
  const span = high - low || 1;
  const unit = 10 ** Math.floor(Math.log10(span));
  const step = [0.1, 0.2, 0.5, 1, 2, 5].map((factor) => factor * unit).find((size) => span / size <= most);
  const found = [];
  for (let value = Math.ceil(low / step - 1e-9) * step; value <= high + 1e-9 * span; value += step) found.push(value);
  return { found, digits: Math.max(0, -Math.floor(Math.log10(step) + 1e-9)) };
}

/** What the axis of scores holds: all of it, or only where the curves end. */
function range(drawn) {
  const all = drawn.flatMap((line) => line.points.flatMap((point) => [point.y, point.low ?? point.y, point.high ?? point.y]));
  const low = Math.min(...all), high = Math.max(...all);
  const smaller = SMALLER_IS_BETTER.has(choice.score);
  if (choice.range === "whole") {
    // A perplexity in the thousands at the start would leave nothing of the rest.
    return smaller ? [Math.max(0, low - 0.08 * low), Math.min(high, 6 * low)] : [0, high * 1.03];
  }
  const ends = drawn.map((line) => line.points.at(-1).y);
  const room = Math.max(1.2 * (Math.max(...ends) - Math.min(...ends)), 0.06 * high, 0.02);
  return smaller ? [low - 0.1 * room, Math.max(...ends) + room] : [Math.max(0, Math.min(...ends) - room), high + 0.1 * room];
}

function draw() {
  const drawn = lines();
  const width = Math.max(300, chart.clientWidth);
  const svg = element("svg", { viewBox: `0 0 ${width} ${HEIGHT}`, height: HEIGHT, role: "img",
    "aria-label": `${SCORES[choice.score]} on the dev set against ${AXES[choice.axis]}` });
  const tip = element("div", { id: "tip", hidden: "" });
  chart.replaceChildren(svg, tip);
  if (!drawn.length) return;

  const [low, high] = range(drawn);
  const last = Math.max(...drawn.flatMap((line) => line.points.map((point) => point.x))) || 1;
  const x = (value) => LEFT + ((width - LEFT - RIGHT) * value) / last;
  const y = (value) => HEIGHT - BOTTOM - ((HEIGHT - BOTTOM - TOP) * (value - low)) / (high - low || 1);

  const up = ticks(low, high, 7);
  for (const value of up.found) {
    svg.append(element("line", { class: "grid", x1: LEFT, x2: width - RIGHT, y1: y(value), y2: y(value) }));
    svg.append(element("text", { x: LEFT - 8, y: y(value) + 4, "text-anchor": "end" }, number(value, up.digits)));
  }
  const along = ticks(0, last, Math.max(3, Math.min(10, width / 90)));
  for (const value of along.found) {
    const anchor = x(value) > width - RIGHT - 12 ? "end" : "middle";
    svg.append(element("text", { x: x(value), y: HEIGHT - BOTTOM + 18, "text-anchor": anchor }, number(value, along.digits)));
  }
  const middle = (LEFT + width - RIGHT) / 2;
  svg.append(element("text", { x: middle, y: HEIGHT - 6, "text-anchor": "middle" }, AXES[choice.axis]));

  const box = { x: LEFT - 4, y: TOP - 6, width: width - LEFT - RIGHT + 8, height: HEIGHT - BOTTOM - TOP + 6 };
  svg.append(element("clipPath", { id: "inside" }, element("rect", box)));
  const inside = element("g", { "clip-path": "url(#inside)" });
  svg.append(inside);
  // The first variant lies over the others: they are compared with it.
  for (const line of [...drawn].sort((one, other) => other.index - one.index)) {
    const group = element("g", { "data-index": line.index });
    const stroke = strokeOf(line.index);
    if (line.points[0].low !== undefined && line.points.length > 1) {
      const there = line.points.map((point) => `${x(point.x)},${y(point.high)}`);
      const back = line.points.map((point) => `${x(point.x)},${y(point.low)}`).reverse();
      group.append(element("path", { class: "band", d: `M${[...there, ...back].join("L")}Z`, fill: stroke.stroke }));
    }
    const path = line.points.map((point) => `${x(point.x).toFixed(1)},${y(point.y).toFixed(1)}`).join("L");
    group.append(element("path", { class: line.index === 0 ? "curve first" : "curve", d: `M${path}`, ...stroke }));
    const end = line.points.at(-1);
    group.append(element("circle", { class: "dot", r: 4, cx: x(end.x), cy: y(end.y), fill: stroke.stroke }));
    inside.append(group);
  }
  const mark = element("circle", { class: "dot", r: 6, visibility: "hidden" });
  inside.append(mark);
  const places = drawn.flatMap((line) => line.points.map((point) => ({ line, point, x: x(point.x), y: y(point.y) })));
  const visible = places.filter((place) => place.y <= HEIGHT - BOTTOM + 2 && place.y >= TOP - 6);
  watch(svg, tip, mark, visible, width);
  emphasise();
}

/** Says which run is nearest to the pointer, and what it had scored there. */
function watch(svg, tip, mark, places, width) {
  const leave = () => {
    tip.hidden = true;
    mark.setAttribute("visibility", "hidden");
    pointedAt = null;
    emphasise();
  };
  svg.addEventListener("pointermove", (event) => {
    const box = svg.getBoundingClientRect();
    const at = { x: ((event.clientX - box.left) * width) / box.width, y: event.clientY - box.top };
    const far = (place) => Math.hypot(place.x - at.x, place.y - at.y);
    const near = places.reduce((best, place) => (far(place) < far(best) ? place : best), places[0]);
    if (!near || far(near) > 60) return leave();
    const { line, point } = near;
    const value = number(point.y, 2);
    tip.textContent = `${line.name}\n${SCORES[choice.score]} ${value}\nstep ${number(point.point.step)}, ${number(point.point.minutes, 1)} minutes`;
    tip.hidden = false;
    const right = near.x + 14 + tip.offsetWidth > width;
    tip.style.left = `${Math.max(0, right ? near.x - tip.offsetWidth - 14 : near.x + 14)}px`;
    tip.style.top = `${Math.max(0, near.y - tip.offsetHeight - 8)}px`;
    mark.setAttribute("cx", near.x);
    mark.setAttribute("cy", near.y);
    mark.setAttribute("fill", strokeOf(line.index).stroke);
    mark.setAttribute("visibility", "visible");
    pointedAt = line.index;
    emphasise();
  });
  svg.addEventListener("pointerleave", leave);
}

function emphasise() {
  for (const group of chart.querySelectorAll("[data-index]")) {
    group.classList.toggle("dim", pointedAt !== null && Number(group.dataset.index) !== pointedAt);
  }
}

function choices() {
  const known = Object.keys(SCORES).filter((score) => variants.some((variant) => score in variant.runs[0].points[0]));
  const rows = [
    ["Score", "score", known.map((score) => [score, SCORES[score]])],
    ["Against", "axis", [["minutes", "Minutes"], ["step", "Steps"]]],
    ["Seeds", "seeds", [["each", "Each"], ["mean", "Mean"]]],
    ["Axis", "range", [["whole", "Whole"], ["end", "Close-up"]]],
  ].filter(([, key]) => key !== "seeds" || variants.some((variant) => variant.runs.length > 1));
  document.getElementById("choices").replaceChildren(...rows.map(([name, key, values]) => {
    const buttons = values.map(([value, label]) => {
      const button = element("button", { type: "button", "aria-pressed": String(choice[key] === value) }, label);
      button.addEventListener("click", () => {
        choice[key] = value;
        for (const each of buttons) each.setAttribute("aria-pressed", String(each === button));
        legend();
        draw();
      });
      return button;
    });
    return element("div", { class: "row", role: "group", "aria-label": name }, element("span", {}, name), ...buttons);
  }));
}

/** Names to hide and show, each with the mean of its best scores. */
function legend() {
  const best = (run) => {
    const values = run.points.map((point) => point[choice.score]);
    return SMALLER_IS_BETTER.has(choice.score) ? Math.min(...values) : Math.max(...values);
  };
  document.getElementById("legend").replaceChildren(...variants.map((variant, index) => {
    const mean = variant.runs.reduce((sum, run) => sum + best(run), 0) / variant.runs.length;
    const sample = element("svg", { viewBox: "0 0 22 10", "aria-hidden": "true" },
      element("line", { x1: 0, x2: 22, y1: 5, y2: 5, "stroke-width": index === 0 ? 3.2 : 2.4, ...strokeOf(index) }));
    const button = element("button", { type: "button", "aria-pressed": String(!hidden.has(index)), title: variant.settings },
      sample, variant.name, element("b", {}, number(mean, 1)));
    button.addEventListener("click", () => {
      if (!hidden.delete(index)) hidden.add(index);
      button.setAttribute("aria-pressed", String(!hidden.has(index)));
      pointedAt = null;
      draw();
    });
    button.addEventListener("pointerenter", () => {
      pointedAt = hidden.has(index) ? null : index;
      emphasise();
    });
    button.addEventListener("pointerleave", () => {
      pointedAt = null;
      emphasise();
    });
    return button;
  }));
}

const theme = document.getElementById("theme");
const preferred = window.matchMedia("(prefers-color-scheme: dark)");
const isDark = () => (document.documentElement.dataset.theme ?? (preferred.matches ? "dark" : "light")) === "dark";
const showTheme = () => theme.setAttribute("aria-pressed", String(isDark()));
theme.addEventListener("click", () => {
  document.documentElement.dataset.theme = isDark() ? "light" : "dark";
  showTheme();
});
preferred.addEventListener("change", showTheme);
showTheme();

choices();
legend();
draw();
new ResizeObserver(() => draw()).observe(chart);
