// Shows the description of the API: one entry for each method of each path. All text goes in as text, never as markup.
"use strict";

const element = (name, kind, ...children) => {
  const made = document.createElement(name);
  if (kind) made.className = kind;
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
  const text = element("pre", "", JSON.stringify(shape(schema, schemas), null, 2));
  // Scrolled by keyboard.
  text.tabIndex = 0;
  return [element("h3", "", title), text];
};

const parameter = ({ name, in: where, description }) =>
  element("li", "", element("code", "", name), element("span", "muted", ` in the ${where}`), description ? `: ${description}` : "");

const entry = (path, method, operation, schemas) => {
  const needs = [operation["x-needs"], operation["x-object"]].filter((word) => word && word !== "-").join(" · ");
  const head = element("summary", "", element("span", `method ${method}`, method.toUpperCase()), element("code", "", path),
    element("span", "needs", needs), element("span", "about", operation.summary));
  const answers = Object.entries(operation.responses).filter(([status]) => status !== "default");
  const inside = element("div", "inside", element("ul", "", ...operation.parameters.map(parameter)),
    ...body("Takes", operation.requestBody?.content, schemas),
    ...answers.flatMap(([status, answer]) => body(`Gives ${status}`, answer.content, schemas)));
  const shown = element("details", "", head, inside);
  shown.dataset.text = `${method} ${path} ${operation.summary}`.toLowerCase();
  return shown;
};

const show = async () => {
  const description = await (await fetch("/v1/openapi.json")).json();
  const sections = new Map();
  for (const [path, methods] of Object.entries(description.paths)) {
    for (const [method, operation] of Object.entries(methods)) {
      const [tag] = operation.tags;
      if (!sections.has(tag)) sections.set(tag, element("section", "", element("h2", "", tag)));
      sections.get(tag).append(entry(path, method, operation, description.components.schemas));
    }
  }
  document.getElementById("routes").replaceChildren(...sections.values());
  document.getElementById("search").addEventListener("input", (event) => {
    const wanted = event.target.value.toLowerCase();
    for (const section of sections.values()) {
      const entries = [...section.querySelectorAll("details")];
      for (const shown of entries) shown.hidden = !shown.dataset.text.includes(wanted);
      section.hidden = entries.every((shown) => shown.hidden);
    }
  });
};

show().catch((error) => {
  document.getElementById("routes").textContent = `The description could not be read: ${error.message}`;
});
