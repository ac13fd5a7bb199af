// Colour that means something: one scale for shares of attention, one colour for each head, in light and dark.

const STEPS = 256;
const GAMMA = 0.7;
const HEADS = 8;

/** Where a share stands on the scale: small shares are spread out a little, because most are small. */
export function position(share) {
  return Math.min(1, Math.max(0, share)) ** GAMMA;
}

/** The colour of a head, as CSS; after eight they come again. */
export function headColour(head) {
  return `var(--lens-head-${(head % HEADS) + 1})`;
}

/** Colours as the page has them now: `scale` as [r, g, b] for 256 steps, `heads` as CSS colours that a canvas takes. */
export function palette(root) {
  const probe = document.createElement("span");
  root.append(probe);
  const resolve = (value) => {
    probe.style.color = value;
    return getComputedStyle(probe).color;
  };
  const heads = Array.from({ length: HEADS }, (_, head) => resolve(headColour(head)));
  const [red, green, blue] = resolve("var(--lens-panel)")
    .match(/[\d.]+/g)
    .map(Number);
  probe.remove();
  const dark = red + green + blue < 384;
  return { dark, heads, scale: dark ? DARK : LIGHT };
}

/** The scale as a CSS gradient, for the legend. */
export function gradient(scale) {
  const stops = Array.from(
    { length: 17 },
    (_, place) => `rgb(${scale[Math.round((place * (STEPS - 1)) / 16)].join(" ")})`,
  );
  return `linear-gradient(to right, ${stops.join(", ")})`;
}

/** Paint a map, one pixel a cell; the page's style makes the pixels large. */
export function paint(canvas, map, width, scale) {
  canvas.width = width;
  canvas.height = map.length / width;
  const image = new ImageData(canvas.width, canvas.height);
  for (let place = 0; place < map.length; place += 1) {
    const [red, green, blue] = scale[Math.round(position(map[place]) * (STEPS - 1))];
    image.data.set([red, green, blue, 255], place * 4);
  }
  canvas.getContext("2d").putImageData(image, 0, 0);
}

/** Call back whenever light becomes dark or the other way round; returns what stops that. */
export function onThemeChange(callback) {
  const media = matchMedia("(prefers-color-scheme: dark)");
  const observer = new MutationObserver(callback);
  media.addEventListener("change", callback);
  observer.observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
  return () => {
    media.removeEventListener("change", callback);
    observer.disconnect();
  };
}

// Lightness is linear in the position on the scale, in OKLCH: equal steps look equal.
const LIGHT = scaleOf([0.985, 0.004, 210], [0.78, 0.1, 215], [0.52, 0.13, 255], [0.27, 0.11, 285]);
const DARK = scaleOf([0.235, 0.012, 260], [0.45, 0.1, 265], [0.68, 0.12, 215], [0.95, 0.09, 130]);

function scaleOf(...stops) {
  return Array.from({ length: STEPS }, (_, step) => {
    const at = step / (STEPS - 1);
    const lightness = stops[0][0] + at * (stops.at(-1)[0] - stops[0][0]);
    const place = at * (stops.length - 1);
    const from = stops[Math.min(Math.floor(place), stops.length - 2)];
    const to = stops[Math.min(Math.floor(place), stops.length - 2) + 1];
    const part = place - stops.indexOf(from);
    return rgb(lightness, from[1] + part * (to[1] - from[1]), from[2] + part * (to[2] - from[2]));
  });
}

/** OKLCH to sRGB, by Björn Ottosson's definition of OKLab. */
function rgb(lightness, chroma, hue) {
  const a = chroma * Math.cos((hue * Math.PI) / 180);
  const b = chroma * Math.sin((hue * Math.PI) / 180);
  const l = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const s = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3;
  return [
    4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
    -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
    -0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s,
  ].map((linear) => {
    const value = Math.min(1, Math.max(0, linear));
    return Math.round(255 * (value <= 0.0031308 ? 12.92 * value : 1.055 * value ** (1 / 2.4) - 0.055));
  });
}
