import { expect, it } from "vitest";
import { FieldErrors, fieldPath } from "./field-errors";

it("reads both spellings of a path", () => {
  expect(fieldPath("databases[0].settings.shared_buffers")).toBe("databases.0.settings.shared_buffers");
  expect(fieldPath("scenario.databases.0.connections")).toBe("databases.0.connections");
  expect(fieldPath("body.scenario.node.memory")).toBe("node.memory");
});

it("gives an error to its input and keeps the others", () => {
  const errors = new FieldErrors([
    { field: "databases[0].settings.shared_buffers", value: "8 bananas", expected: "a size such as 8GB" },
    { field: "node", value: null, expected: "the node's facts" },
  ]);
  expect(errors.at("databases.0.settings.shared_buffers")).toBe("Expected a size such as 8GB.");
  expect(errors.at("databases.0.name")).toBeUndefined();
  const left = errors.without(new Set(["databases.0.settings.shared_buffers"]));
  expect(left.map(({ field }) => field)).toEqual(["node"]);
});

it("ends a sentence once where a value was perhaps meant", () => {
  const errors = new FieldErrors([
    { field: "node.memory", value: "8", expected: "a size such as 64GiB; did you mean 8GiB?" },
  ]);
  expect(errors.at("node.memory")).toBe("Expected a size such as 64GiB; did you mean 8GiB?");
});
