import { expect, it } from "vitest";
import { compareSearch, loginSearch, nodesSearch } from "./search";

it("keeps only local paths after the login", () => {
  expect(loginSearch({ next: "/planner?node=1" }).next).toBe("/planner?node=1");
  for (const next of ["https://evil.example", "//evil.example", "/\\evil.example", "planner", 7]) {
    expect(loginSearch({ next }).next).toBeUndefined();
  }
});

it("opens a damaged link with defaults", () => {
  expect(nodesSearch({ q: 7, kind: "odd" })).toEqual({
    q: undefined,
    kind: undefined,
    pools: undefined,
    sort: undefined,
    down: undefined,
  });
  expect(compareSearch({ runs: "x" }).runs).toBeUndefined();
});
