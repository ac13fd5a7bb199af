// From which language into which, and by which model.

const names = "DisplayNames" in Intl ? new Intl.DisplayNames(["en"], { type: "language", fallback: "none" }) : null;

const ours = { tw: "Twi", twi: "Twi" }; // which browsers take for Akan, of which it is a part

/** What people call a language: "German" for "de"; a code that nobody has named stays a code. */
export function nameOf(code) {
  try {
    return ours[code] ?? names?.of(code) ?? code;
  } catch {
    return code;
  }
}

/** Every direction of every model: {model, from, into, source, target}; from and into are what is chosen between. */
export function directionsOf(models) {
  return models.flatMap((model) => {
    const targets = model.targets.length ? model.targets : [null];
    const from = model.source ?? `(${model.name})`;
    return targets.map((target) => ({ model, from, into: target ?? "(translation)", source: model.source, target }));
  });
}

/** What a choice is called; a model that does not say its languages is called by its name. */
export function labelOf(choice) {
  return choice.startsWith("(") ? choice.slice(1, -1) : nameOf(choice);
}

/** The direction that was used last if it is still there, else the server's own, else the first. */
export function firstDirection(directions, remembered, language) {
  return (
    directions.find(({ model, target }) => model.name === remembered.model && target === remembered.target) ??
    directions.find(({ model }) => model.name === remembered.model) ??
    directions.find(({ from, into }) => from === language?.source?.code && into === language?.target?.code) ??
    directions[0]
  );
}

/** The choosers above the panes. Calls `changed(direction)` when the user chooses another one. */
export class DirectionChooser {
  constructor({ from, into, model, modelChooser, swap }, changed) {
    Object.assign(this, { from, into, model, modelChooser, swap, changed, directions: [], direction: null });
    from.addEventListener("change", () => this.choose(this.nearest({ from: from.value })));
    into.addEventListener("change", () => this.choose(this.nearest({ into: into.value })));
    model.addEventListener("change", () => this.choose(this.nearest({ name: model.value })));
    swap.addEventListener("click", () => this.choose(this.reversed(), true));
  }

  /** Show these directions, with one of them chosen. */
  offer(directions, direction) {
    this.directions = directions;
    this.direction = direction;
    this.draw();
  }

  /** The direction that has what was just chosen, and of the rest as much as possible stays. */
  nearest({ from, into, name }) {
    const now = this.direction;
    const pool = this.directions.filter(
      (each) =>
        (from === undefined || each.from === from) &&
        (into === undefined || (each.into === into && each.from === now.from)) &&
        (name === undefined || (each.model.name === name && each.from === now.from && each.into === now.into)),
    );
    const likeness = (each) => 2 * (each.into === now.into) + (each.model.name === now.model.name);
    return pool.reduce((best, each) => (likeness(each) > likeness(best) ? each : best), pool[0]);
  }

  /** The way back, if some model knows it. */
  reversed() {
    const { from, into } = this.direction ?? {};
    return this.directions.find((each) => each.from === into && each.into === from);
  }

  choose(direction, swapped = false) {
    if (!direction) return;
    this.direction = direction;
    this.draw();
    this.changed(direction, swapped);
  }

  draw() {
    const { direction, directions } = this;
    const sameStart = directions.filter(({ from }) => from === direction.from);
    const samePair = sameStart.filter(({ into }) => into === direction.into);
    fill(this.from, directions.map(({ from }) => from), direction.from, labelOf);
    fill(this.into, sameStart.map(({ into }) => into), direction.into, labelOf);
    fill(this.model, samePair.map(({ model }) => model.name), direction.model.name, (name) => name);
    this.modelChooser.hidden = samePair.length < 2;
    this.swap.disabled = !this.reversed();
  }
}

function fill(select, values, chosen, label) {
  select.replaceChildren(...Array.from(new Set(values), (value) => new Option(label(value), value, false, value === chosen)));
  select.disabled = select.options.length < 2;
}
