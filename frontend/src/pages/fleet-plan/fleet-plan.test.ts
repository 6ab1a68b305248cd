import { expect, it } from "vitest";
import { formatPoolList, progressWords, syntheticWords } from "./fleet-plan-words";
import { fromSelector, selectionWords, toSelector, withoutNode } from "./selection-words";

it("says which nodes are meant", () => {
  expect(selectionWords({})).toBe("all nodes");
  expect(selectionWords({ machine_type: "AMD EPYC 9R14, KVM", label: ["env=prod"], stale: false })).toBe(
    "nodes of AMD EPYC 9R14, KVM, labelled env=prod, that report",
  );
  expect(selectionWords({ finding: "pool_idle", state: "attention" })).toBe(
    "nodes with the finding pool_idle (attention)",
  );
});

it("goes to the API's selector and back without loss", () => {
  const selection = { q: "db", label: ["env=prod"], synthetic: false };
  expect(fromSelector({ ...toSelector(selection), machine_type: null, stale: null })).toEqual(selection);
});

it("leaves out the scenario's own node", () => {
  expect(withoutNode({ node: { memory: "64GiB" }, databases: [] })).toEqual({ databases: [] });
});

it("says how far a job is, and never divides by nothing", () => {
  expect(progressWords({ status: "running", nodes_done: 250, nodes_total: 1000 })).toEqual({
    share: 0.25,
    text: "250 of 1,000 nodes planned",
  });
  expect(progressWords({ status: "queued", nodes_done: 0, nodes_total: 0 }).share).toBe(0);
});

it("sums a group's pools over its NUMA nodes by page size", () => {
  const pools = [
    { numa_node: 0, page_bytes: 2 ** 21, pages: 2000 },
    { numa_node: 1, page_bytes: 2 ** 21, pages: 2244 },
    { numa_node: 0, page_bytes: 2 ** 30, pages: 4 },
  ];
  expect(formatPoolList(pools).replaceAll("\u00a0", " ")).toBe("4,244 × 2M, 4 × 1G");
  expect(formatPoolList([])).toBe("no huge pages");
});

it("says which of the nodes are made up", () => {
  expect(syntheticWords(undefined)).toBe("");
  expect(syntheticWords({ nodes: 3, nodes_synthetic: 0 })).toBe("");
  expect(syntheticWords({ nodes: 201, nodes_synthetic: 200 })).toBe("200 of all 201 nodes are synthetic.");
  expect(syntheticWords({ nodes: 50, nodes_synthetic: 50 })).toBe("All nodes are synthetic.");
});
