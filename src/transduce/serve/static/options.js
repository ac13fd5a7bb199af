// The options dialog: how to search, how the page looks, and what it remembers.

import { element } from "./element.js";
import { applyTheme, forgetKey, preferences, remember, rememberedKey } from "./preferences.js";

const BEAMS = [[0, "The model’s own"], [1, "1, greedy"], [2, "2"], [4, "4"], [8, "8"], [16, "16"]];
const ALTERNATIVES = [[1, "None"], [3, "2"], [5, "4"], [10, "9"]];
const BEAM_HELP = "Translations kept while searching. Wider is slower, and often a little better.";
const ALTERNATIVES_HELP = "How many alternatives of a sentence are shown.";
const THEMES = [["system", "As the system"], ["light", "Light"], ["dark", "Dark"]];

/** Wire the dialog to its button. `searched()` is called when the search is to be done otherwise. */
export function setUpOptions(dialog, opener, searched) {
  opener.addEventListener("click", () => {
    draw(dialog, searched);
    dialog.showModal();
  });
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) dialog.close(); // beside it
  });
}

function draw(dialog, searched) {
  const search = (change) => {
    remember(change);
    searched();
  };
  const parts = [
    choice("Beam", "beam", BEAMS, BEAM_HELP, (value) => search({ beam: Number(value) })),
    choice("Other ways", "alternatives", ALTERNATIVES, ALTERNATIVES_HELP, (value) => search({ alternatives: Number(value) })),
    choice("Theme", "theme", THEMES, "", (theme) => {
      remember({ theme });
      applyTheme();
    }),
  ];
  if (rememberedKey()) {
    const forget = element("button", { type: "button", class: "quiet" }, "Forget the key");
    forget.addEventListener("click", () => {
      forgetKey();
      location.reload();
    });
    parts.push(element("p", {}, forget));
  }
  const title = element("h2", { id: "options-title" }, "Options");
  const close = element("button", { class: "close", "aria-label": "Close" }, "×");
  const said = "This browser remembers model, direction, options and tab. It never keeps your text.";
  dialog.replaceChildren(
    element(
      "form",
      { method: "dialog" },
      element("div", { class: "panel-head" }, title, close),
      ...parts,
      element("p", { class: "fine-print" }, said),
    ),
  );
}

function choice(label, name, values, help, changed) {
  const id = `option-${name}`;
  const select = element("select", { id, "aria-describedby": help ? `${id}-help` : null });
  select.append(...values.map(([value, text]) => new Option(text, value, false, String(value) === String(preferences[name]))));
  select.addEventListener("change", () => changed(select.value));
  const note = help ? element("p", { class: "fine-print", id: `${id}-help` }, help) : null;
  return element("div", { class: "option" }, element("label", { for: id }, label), select, note);
}
