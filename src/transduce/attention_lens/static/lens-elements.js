// Elements of the page, made in one line each.

/** An element with a class, properties (`text`, `on…`, `data-…`, `aria-…`, others) and children. */
export function element(tag, className = "", properties = {}, ...children) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null) continue;
    if (name === "text") made.textContent = value;
    else if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

/** A row of buttons of which any may be pressed: `choices` are [value, label, description, colour]. */
export function buttonRow(name, choices, onChoose) {
  const buttons = choices.map(([value, label, description, colour]) => {
    const button = element("button", "lens-button", {
      type: "button",
      text: label,
      "aria-pressed": "false",
      "aria-label": description,
      title: description,
      "data-value": value,
      onclick: (event) => onChoose(value, event),
    });
    if (colour) {
      button.classList.add("lens-head");
      button.style.setProperty("--lens-colour", colour);
    }
    return button;
  });
  const row = element("div", "lens-row", { role: "group", "aria-label": name });
  row.append(element("span", "lens-row-name", { text: name, "aria-hidden": "true" }), ...buttons);
  const press = (isPressed) => {
    for (const [place, button] of buttons.entries()) {
      button.setAttribute("aria-pressed", String(isPressed(choices[place][0])));
    }
  };
  return { row, press };
}

/** One tab stop for many elements: arrow keys go from one to the next, `step(key, place)` says to which. */
export function rove(container, items, step) {
  for (const [place, item] of items.entries()) item.tabIndex = place === 0 ? 0 : -1;
  container.addEventListener("focusin", (event) => {
    if (!items.includes(event.target)) return;
    for (const item of items) item.tabIndex = item === event.target ? 0 : -1;
  });
  container.addEventListener("keydown", (event) => {
    const place = items.indexOf(event.target);
    const next = place < 0 ? undefined : step(event.key, place);
    if (next === undefined) return;
    event.preventDefault();
    items[Math.max(0, Math.min(items.length - 1, next))].focus();
  });
}

/** A share as people read it. */
export function percent(share) {
  if (share > 0 && share < 0.01) return "<1%";
  return `${Math.round(share * 100)}%`;
}
