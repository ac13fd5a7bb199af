// The page: reads what the server offers, and puts the parts together.

import { ServerError, readModels, readSettings, useKey } from "./api.js";
import { drawCard } from "./card.js";
import { Desk } from "./desk.js";
import { DirectionChooser, directionsOf, firstDirection, labelOf } from "./directions.js";
import { byId } from "./element.js";
import { FileTab } from "./file-tab.js";
import { LensTab } from "./lens-tab.js";
import { Looks } from "./looks.js";
import { Notices } from "./notices.js";
import { setUpOptions } from "./options.js";
import { applyTheme, preferences, remember, rememberKey, rememberedKey } from "./preferences.js";
import { setUpTabs } from "./tabs.js";
import { Translation, textOf } from "./translation.js";

const REQUEST_CHARACTERS = 2000; // in one request where the server sets no limit: answers come sooner
const REQUEST_TEXTS = 50;

applyTheme();
useKey(rememberedKey());

const translation = new Translation();
translation.options = searchOptions();
const looks = new Looks();
const desk = new Desk(translation, looks);
const notices = new Notices(byId("notices"), keyGiven);
let keyWaiters = [];

const chooser = new DirectionChooser(
  { from: byId("from"), into: byId("into"), model: byId("model"), modelChooser: byId("model-chooser"), swap: byId("swap") },
  (direction, swapped) => {
    const text = textOf(translation.shown);
    take(direction);
    if (swapped && text) desk.fill(text);
  },
);

const files = new FileTab(byId("view-file"), {
  situation: () => ({ direction: translation.direction, limits: translation.limits }),
  keyWanted: (error) => {
    notices.show(error, start);
    return new Promise((resolve) => keyWaiters.push(resolve));
  },
});

const lens = new LensTab(byId("view-lens"), {
  look: async (sentence, signal) => (await looks.of(sentence, translation.shown.direction, signal)).data,
  begin: (sentence, prefix) => translation.choose(sentence.source, { prefix }),
});

translation.addEventListener("trouble", ({ detail }) => {
  notices.show(detail, detail.kind === "gone" || detail.kind === "missing" ? start : () => translation.renew());
});
translation.addEventListener("fine", () => {
  if (notices.kind !== "back" && notices.kind !== "key") notices.clear();
  lens.offer(translation.shown.sentences, preferences.tab === "lens");
});

setUpOptions(byId("options"), byId("open-options"), () => translation.set({ options: searchOptions() }));
setUpTabs(document.querySelector("[role=tablist]"), preferences.tab, (tab) => {
  remember({ tab });
  document.body.dataset.tab = tab;
  if (tab === "lens") lens.draw();
});
start();

/** Read what the server offers; again after it was away, since it may offer something else. */
async function start() {
  try {
    const [settings, models] = await Promise.all([readSettings(), readModels()]);
    const directions = directionsOf(models);
    if (!directions.length) throw new ServerError("missing", "The server has no models.");
    translation.limits = limitsOf(settings);
    chooser.offer(directions, firstDirection(directions, preferences, settings.language));
    desk.count();
    take(chooser.direction);
    if (settings.keyRequired && !rememberedKey()) notices.show(new ServerError("key", "This server asks for a key."), start);
  } catch (error) {
    if (!(error instanceof ServerError)) throw error;
    notices.show(error, start);
  }
}

/** Translate in a direction from now on. */
function take(direction) {
  remember({ model: direction.model.name, target: direction.target });
  byId("source-name").textContent = labelOf(direction.from);
  byId("target-name").textContent = direction.target ? labelOf(direction.into) : "Translation";
  if (direction.source) byId("source").lang = direction.source;
  else byId("source").removeAttribute("lang");
  drawCard(byId("view-card"), direction.model);
  translation.set({ direction });
}

function keyGiven(key, forLong) {
  useKey(key);
  rememberKey(key, forLong);
  notices.clear();
  for (const resolve of keyWaiters.splice(0)) resolve();
  if (translation.direction) translation.renew();
  else start();
}

function searchOptions() {
  return { beam: preferences.beam, alternatives: preferences.alternatives };
}

function limitsOf({ charLimit, batchLimit }) {
  const characters = charLimit > 0 ? charLimit : Infinity;
  return { characters, request: Math.min(characters, REQUEST_CHARACTERS), texts: batchLimit > 0 ? batchLimit : REQUEST_TEXTS };
}
