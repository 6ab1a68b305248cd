import { expect, it } from "vitest";
import { fakeNode } from "@/test/fakes";
import { filterNodes, isFiltered } from "./node-filter";

const nodes = [
  fakeNode({ name: "metal", virtualised: false }),
  fakeNode({ name: "guest", pools: [] }),
  fakeNode({
    name: "mystery",
    virtualised: null,
    pools: [{ page_bytes: 2097152, nr_hugepages: 0, free_hugepages: 0 }],
  }),
];
const names = (filter: Parameters<typeof filterNodes>[1]) =>
  filterNodes(nodes, filter).map(({ name }) => name);

it("filters by kind, and an unknown kind matches neither", () => {
  expect(names({})).toEqual(["metal", "guest", "mystery"]);
  expect(names({ kind: "physical" })).toEqual(["metal"]);
  expect(names({ kind: "virtual" })).toEqual(["guest"]);
});

it("filters by reserved pools; an empty pool is none", () => {
  expect(names({ pools: "reserved" })).toEqual(["metal"]);
  expect(names({ pools: "none" })).toEqual(["guest", "mystery"]);
});

it("knows when a filter is set", () => {
  expect(isFiltered({})).toBe(false);
  expect(isFiltered({ kind: "any", pools: "any", q: "" })).toBe(false);
  expect(isFiltered({ q: "db" })).toBe(true);
});
