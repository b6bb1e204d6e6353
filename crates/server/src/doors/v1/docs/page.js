// Shows the description of the API: one entry for each method of each path. All text goes in as text, never as markup.
"use strict";

const element = (name, text, ...children) => {
  const made = document.createElement(name);
  if (text) made.textContent = text;
  made.append(...children);
  return made;
};

// The shape behind a reference, with the shapes it is made of in place of their names, a few levels deep.
const shape = (schema, schemas, depth = 0) => {
  if (!schema || typeof schema !== "object" || depth > 6) return schema;
  if (schema.$ref) return shape(schemas[schema.$ref.split("/").pop()], schemas, depth + 1);
  if (Array.isArray(schema)) return schema.map((part) => shape(part, schemas, depth));
  return Object.fromEntries(Object.entries(schema).map(([key, part]) => [key, shape(part, schemas, depth)]));
};

const body = (title, content, schemas) => {
  const schema = content && Object.values(content)[0]?.schema;
  if (!schema) return [];
  return [element("h4", title), element("pre", JSON.stringify(shape(schema, schemas), null, 2))];
};

const entry = (path, method, operation, schemas) => {
  const head = element("summary");
  const name = element("span", method.toUpperCase());
  name.className = "method";
  const needs = element("span", `${operation["x-needs"]} ${operation["x-object"]}`.replace(/^- -$/, ""));
  needs.className = "needs";
  head.append(name, element("code", path), ` ${operation.summary}`, needs);
  const parameters = operation.parameters.map((parameter) =>
    element("li", "", element("code", parameter.name), ` (${parameter.in}) ${parameter.description ?? ""}`));
  const answers = Object.entries(operation.responses).filter(([status]) => status !== "default");
  const shown = element("details", "", head, element("ul", "", ...parameters),
    ...body("Takes", operation.requestBody?.content, schemas),
    ...answers.flatMap(([status, answer]) => body(`Gives ${status}`, answer.content, schemas)));
  shown.dataset.text = `${method} ${path} ${operation.summary}`.toLowerCase();
  return shown;
};

const show = async () => {
  const main = document.getElementById("routes");
  const document_ = await (await fetch("/v1/openapi.json")).json();
  const schemas = document_.components.schemas;
  const entries = Object.entries(document_.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => entry(path, method, operation, schemas)));
  main.replaceChildren(...entries);
  document.getElementById("search").addEventListener("input", (event) => {
    const wanted = event.target.value.toLowerCase();
    for (const shown of entries) shown.hidden = !shown.dataset.text.includes(wanted);
  });
};

show().catch((error) => {
  document.getElementById("routes").textContent = `The description could not be read: ${error.message}`;
});
