// Markdown as model cards use it, as elements. Text stays text: nothing in a card can become markup or script.

import { element } from "./element.js";

const SAFE_LINK = /^(?:https?:|mailto:)/i;
const INLINE = /(`+)(.+?)\1|\*\*(.+?)\*\*|\*(.+?)\*|\[([^\]]+)\]\(([^)\s]+)\)|<(https?:[^>\s]+)>/gs;
const ITEM = /^\s*(?:[-*+]|(\d+)[.)])\s+/;

/** Elements for headings, paragraphs, lists, tables, code, quotes and links. */
export function markdown(text) {
  const lines = text.replaceAll("\r\n", "\n").split("\n");
  const blocks = [];
  while (lines.length) {
    const block = next(lines);
    if (block) blocks.push(block);
  }
  return blocks;
}

function next(lines) {
  const line = lines.shift();
  if (!line.trim()) return null;
  const heading = /^(#{1,6})\s+(.*?)\s*#*$/.exec(line);
  if (heading) return element(`h${Math.min(heading[1].length + 1, 6)}`, {}, ...inline(heading[2]));
  if (/^\s*(?:```|~~~)/.test(line)) return code(line, lines);
  if (/^\s*([-*_])\s*(?:\1\s*){2,}$/.test(line)) return element("hr");
  if (line.includes("|") && /^[\s|:-]+$/.test(lines[0] ?? "") && (lines[0] ?? "").includes("-")) return table(line, lines);
  if (ITEM.test(line)) return list(line, lines);
  if (line.startsWith(">")) {
    const quoted = [line, ...take(lines, (each) => each.startsWith(">"))].map((each) => each.replace(/^>\s?/, ""));
    return element("blockquote", {}, ...markdown(quoted.join("\n")));
  }
  return element("p", {}, ...inline([line, ...take(lines, (each) => each.trim() && !begins(each))].join("\n")));
}

/** Whether a line ends a paragraph because something else begins. */
function begins(line) {
  return /^#{1,6}\s|^\s*(?:```|~~~)|^>/.test(line) || ITEM.test(line);
}

function code(fence, lines) {
  const mark = fence.trim().slice(0, 3);
  const inside = take(lines, (line) => !line.trim().startsWith(mark));
  lines.shift();
  return element("pre", { tabindex: 0 }, element("code", {}, inside.join("\n")));
}

function table(head, lines) {
  lines.shift();
  const row = (line, tag) => element("tr", {}, ...cells(line).map((cell) => element(tag, {}, ...inline(cell))));
  const body = take(lines, (line) => line.includes("|")).map((line) => row(line, "td"));
  const made = element("table", {}, element("thead", {}, row(head, "th")), element("tbody", {}, ...body));
  return element("div", { class: "table", tabindex: 0, role: "group", "aria-label": "Table" }, made);
}

function cells(line) {
  return line.trim().replace(/^\||\|$/g, "").split("|").map((cell) => cell.trim());
}

function list(first, lines) {
  const all = [first, ...take(lines, (line) => line.trim() && (ITEM.test(line) || /^\s/.test(line) || !begins(line)))];
  const items = [];
  for (const line of all) {
    if (ITEM.test(line)) items.push(line.replace(ITEM, ""));
    else items[items.length - 1] += `\n${line.trim()}`;
  }
  return element(ITEM.exec(first)[1] ? "ol" : "ul", {}, ...items.map((item) => element("li", {}, ...inline(item))));
}

/** Code, bold, italics and links inside a line. */
function inline(text) {
  const parts = [];
  let from = 0;
  for (const match of text.matchAll(INLINE)) {
    const [whole, , literal, bold, italic, name, address, bare] = match;
    parts.push(text.slice(from, match.index));
    from = match.index + whole.length;
    if (literal) parts.push(element("code", {}, literal));
    else if (bold) parts.push(element("strong", {}, ...inline(bold)));
    else if (italic) parts.push(element("em", {}, ...inline(italic)));
    else parts.push(link(name ?? bare, address ?? bare));
  }
  parts.push(text.slice(from));
  return parts.filter((part) => part !== "");
}

function link(name, address) {
  if (!SAFE_LINK.test(address)) return document.createTextNode(name); // a file of the model's directory, or worse
  return element("a", { href: address, rel: "noopener noreferrer", target: "_blank" }, name);
}

function take(lines, wanted) {
  const taken = [];
  while (lines.length && wanted(lines[0])) taken.push(lines.shift());
  return taken;
}
