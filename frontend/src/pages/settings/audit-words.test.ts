import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { ACTION_CHOICES, actionWords } from "./audit-words";

const read = (path: string) => readFileSync(new URL(`../../../../backend/${path}`, import.meta.url), "utf8");

it("has words for every operation that leaves a line in the log", () => {
  const { paths } = JSON.parse(read("openapi.json")) as {
    paths: Record<string, Record<string, { operationId?: string }>>;
  };
  const changing = Object.values(paths).flatMap((methods) =>
    ["post", "put", "patch", "delete"].flatMap((method) => methods[method]?.operationId ?? []),
  );
  const [, silent = ""] =
    /NO_CHANGE = frozenset\(\s*\{([^}]*)\}/.exec(read("hugeplan/access/audit.py")) ?? [];
  const quiet = [...silent.matchAll(/"([^"]+)"/g)].map(([, name]) => name);
  expect(changing.length).toBeGreaterThan(30);
  expect(quiet.length).toBeGreaterThan(0);
  const without = changing.filter((action) => !quiet.includes(action) && actionWords(action) === action);
  expect(without).toEqual([]);
});

it("tells every two actions apart, and keeps the name of one that it does not know", () => {
  const labels = ACTION_CHOICES.map(({ label }) => label);
  expect(new Set(labels).size).toBe(labels.length);
  expect(actionWords("session_create")).toBe("Signed in");
  expect(actionWords("later_version_does")).toBe("later_version_does");
});
