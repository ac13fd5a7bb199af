// What this browser remembers between visits. Never the text: what people translate is nobody's business.

const NAME = "transduce";
const KEY_NAME = "transduce-key";
const DEFAULTS = { model: null, target: null, beam: 0, alternatives: 3, theme: "system", tab: "text" };

/** The remembered choices; where the browser lets nothing be kept, they last until the page is closed. */
export const preferences = { ...DEFAULTS, ...stored() };

/** Change some choices, and remember them. */
export function remember(changes) {
  Object.assign(preferences, changes);
  withStorage(() => localStorage.setItem(NAME, JSON.stringify(preferences)));
}

/** The key that was given before, or null. */
export function rememberedKey() {
  return withStorage(() => sessionStorage.getItem(KEY_NAME) ?? localStorage.getItem(KEY_NAME)) ?? null;
}

/** Keep a key until the browser is closed, or longer if the user wishes. */
export function rememberKey(key, forLong) {
  forgetKey();
  withStorage(() => (forLong ? localStorage : sessionStorage).setItem(KEY_NAME, key));
}

/** Forget the key wherever it is kept. */
export function forgetKey() {
  withStorage(() => sessionStorage.removeItem(KEY_NAME));
  withStorage(() => localStorage.removeItem(KEY_NAME));
}

/** Show the page in the chosen theme. */
export function applyTheme() {
  if (preferences.theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = preferences.theme;
}

function stored() {
  const found = withStorage(() => JSON.parse(localStorage.getItem(NAME) ?? "{}"));
  if (found === null || typeof found !== "object") return {};
  return Object.fromEntries(Object.entries(found).filter(([name, value]) => name in DEFAULTS && fits(name, value)));
}

/** Whoever edits their storage, or comes with that of a later version, still gets a page that works. */
function fits(name, value) {
  if (name === "theme") return ["system", "light", "dark"].includes(value);
  if (name === "beam") return Number.isInteger(value) && value >= 0 && value <= 16;
  if (name === "alternatives") return Number.isInteger(value) && value >= 1 && value <= 10;
  return value === null || typeof value === "string";
}

/** Storage may be switched off, full, or spoilt: then there is nothing to remember, and nothing breaks. */
function withStorage(action) {
  try {
    return action();
  } catch {
    return null;
  }
}
