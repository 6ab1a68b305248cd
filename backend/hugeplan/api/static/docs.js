"use strict";

// Draws the routes of the OpenAPI document. Text is set as text, never as markup.

const METHODS = ["get", "post", "put", "patch", "delete"];
const EXAMPLE_DEPTH = 4;

function element(tag, text, className) {
  const node = document.createElement(tag);
  if (text !== undefined) node.textContent = text;
  if (className) node.className = className;
  return node;
}

function resolve(schema, spec) {
  if (!schema || !schema.$ref) return schema || {};
  return schema.$ref.slice(2).split("/").reduce((at, key) => at[key], spec);
}

function typeName(schema) {
  if (!schema) return "";
  if (schema.$ref) return schema.$ref.split("/").pop();
  if (schema.anyOf) return schema.anyOf.map(typeName).join(" | ");
  if (schema.type === "array") return `${typeName(schema.items)}[]`;
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(" | ");
  return schema.format || schema.type || "any";
}

// The shape of a schema as a JSON-like outline: field names with their types.
function outline(schema, spec, depth = 0) {
  const resolved = resolve(schema, spec);
  if (depth >= EXAMPLE_DEPTH) return typeName(schema);
  if (resolved.anyOf) {
    const some = resolved.anyOf.filter((option) => option.type !== "null");
    const shape = outline(some[0], spec, depth);
    return typeof shape === "string" ? typeName(resolved) : shape;
  }
  if (resolved.type === "array") return [outline(resolved.items, spec, depth + 1)];
  if (!resolved.properties) return typeName(schema);
  const fields = Object.entries(resolved.properties);
  return Object.fromEntries(fields.map(([name, field]) => [name, outline(field, spec, depth + 1)]));
}

function body(title, content, spec) {
  const part = document.createDocumentFragment();
  for (const [mediaType, media] of Object.entries(content || {})) {
    part.append(element("h4", `${title} (${mediaType})`));
    part.append(element("pre", JSON.stringify(outline(media.schema, spec), null, 2)));
  }
  return part;
}

function parameters(list) {
  const table = element("table");
  for (const parameter of list) {
    const row = element("tr");
    row.append(element("td", parameter.name + (parameter.required ? " (required)" : "")));
    row.append(element("td", parameter.in));
    row.append(element("td", typeName(parameter.schema)));
    row.append(element("td", parameter.description || parameter.schema.description || ""));
    table.append(row);
  }
  return table;
}

function operation(path, method, details, spec) {
  const box = element("details");
  box.dataset.text = `${method} ${path} ${details.operationId} ${details.description || ""}`.toLowerCase();
  const head = element("summary");
  head.append(element("span", method.toUpperCase(), "method"), element("code", path));
  head.append(element("div", (details.description || details.summary || "").replaceAll("``", ""), "purpose"));
  box.append(head);
  box.addEventListener("toggle", () => {
    if (!box.open || box.childElementCount > 1) return;
    if (details.parameters) box.append(parameters(details.parameters));
    if (details.requestBody) box.append(body("Request", details.requestBody.content, spec));
    for (const [status, response] of Object.entries(details.responses)) {
      box.append(body(`Answer ${status}: ${response.description}`, response.content, spec));
    }
  });
  return box;
}

async function start() {
  const summary = document.getElementById("summary");
  const list = document.getElementById("operations");
  const filter = document.getElementById("filter");
  const answer = await fetch("/api/openapi.json");
  if (!answer.ok) {
    summary.textContent = `The OpenAPI document cannot be read (status ${answer.status}).`;
    return;
  }
  const spec = await answer.json();
  summary.prepend(element("span", `Version ${spec.info.version}. ${spec.info.description} `));
  for (const [path, methods] of Object.entries(spec.paths)) {
    for (const method of METHODS) {
      if (methods[method]) list.append(operation(path, method, methods[method], spec));
    }
  }
  filter.addEventListener("input", () => {
    for (const box of list.children) box.hidden = !box.dataset.text.includes(filter.value.toLowerCase());
  });
}

start();
