import { expect, it } from "vitest";
import { pastedWords } from "./paste-settings";

const found = {
  source: "PostgreSQL SHOW ALL",
  engine: "postgresql",
  version: "17",
  settings: { shared_buffers: "8GB" },
  at_default: 25,
  without_effect: 1344,
  unknown: [],
  refused: [],
};

it("says what was taken and what was left out", () => {
  expect(pastedWords(found)).toEqual([
    "Read as PostgreSQL SHOW ALL, version 17: 1 setting taken.",
    "25 at their default and 1,344 without effect on memory are left out.",
  ]);
});

it("names what is not known and what a server would not take", () => {
  const refused = [{ name: "max_connections", value: "-1", why: "expected 1 to 100000" }];
  expect(pastedWords({ ...found, version: null, unknown: ["odd", "other"], refused }).slice(2)).toEqual([
    "Not known here: odd, other.",
    "Not taken: max_connections = -1, expected 1 to 100000.",
  ]);
});
