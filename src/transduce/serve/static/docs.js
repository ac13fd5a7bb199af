/* The OpenAPI document, for people: each route with what it takes and what it gives. */

import { element } from "./element.js";

const document_ = await (await fetch("openapi.json")).json();
const place = document.getElementById("routes");

/** What a schema stands for: a reference is followed. */
function resolved(schema) {
  const name = schema?.$ref?.split("/").pop();
  return name ? document_.components.schemas[name] : schema ?? {};
}

/** A schema in a few words: "text", "list of text", "one of a, b". */
function inWords(schema) {
  const whole = resolved(schema);
  if (whole.enum) return whole.enum.length === 1 ? `“${whole.enum[0]}”` : `one of ${whole.enum.join(", ")}`;
  if (whole.anyOf) return whole.anyOf.filter((each) => each.type !== "null").map(inWords).join(" or ");
  if (whole.type === "array") return `list of ${inWords(whole.items ?? {})}`;
  const range = "minimum" in whole ? `, ${whole.minimum} to ${whole.maximum}` : "";
  const names = { string: "text", integer: "whole number", number: "number", boolean: "true or false", object: whole.title };
  return (names[whole.type] ?? "anything") + range;
}

/** The fields of what is taken or given; of what is taken, some are needed. */
function fields(schema, taken = false) {
  const whole = resolved(schema);
  if (whole.type === "array") return fields(whole.items, taken);
  const list = element("dl");
  for (const [name, field] of Object.entries(whole.properties ?? {})) {
    const needed = taken && whole.required?.includes(name) ? ", needed" : "";
    list.append(
      element("dt", {}, name),
      element("dd", {}, field.description ? `${field.description} ` : "", element("span", { class: "docs-kind" }, inWords(field) + needed)),
    );
  }
  return list;
}

function route(path, method, operation) {
  const section = element(
    "section",
    { class: "docs-route" },
    element("h2", {}, element("span", { class: "docs-method" }, method.toUpperCase()), path),
    element("p", {}, operation.description ?? ""),
  );
  const taken = operation.requestBody?.content;
  if (taken) section.append(element("h3", {}, `Takes ${Object.keys(taken).join(" or ")}`), fields(taken["application/json"].schema, true));
  const given = operation.responses["200"]?.content?.["application/json"]?.schema;
  if (given) section.append(element("h3", {}, given.type === "array" ? "Gives a list of" : "Gives"), fields(given));
  return section;
}

function errors() {
  const list = element("dl");
  for (const [status, response] of Object.entries(document_.paths["/translate"].post.responses)) {
    if (status !== "200") list.append(element("dt", {}, status), element("dd", {}, response.description));
  }
  return element(
    "section",
    { class: "docs-route" },
    element("h2", {}, '{"error": "…"}'),
    element("p", {}, "Whatever cannot be served is answered with a sentence, and a status that says what kind of trouble it is."),
    list,
  );
}

place.append(
  element("p", {}, document_.info.description),
  ...Object.entries(document_.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => route(path, method, operation))),
  errors(),
);
place.removeAttribute("aria-busy");
