// Making elements: text only ever becomes text nodes, so nothing that a server or a file says can become markup.

/** An element with attributes, listeners (`onclick`), and children that are elements or text. */
export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) made.setAttribute(name, value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

/** The element of the page with this id. */
export function byId(id) {
  return document.getElementById(id);
}
