import { expect, it } from "vitest";
import type { FleetPlanGroup, FleetPlanSummary } from "@/api/types";
import {
  answerOf,
  changesPools,
  headline,
  progressWords,
  syntheticWords,
  withoutName,
} from "./fleet-plan-words";
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

it("says a reason in its node's row without the node's name", () => {
  expect(withoutName("db-7: no history", "db-7")).toBe("no history");
  expect(withoutName("db-77: no history", "db-7")).toBe("db-77: no history");
});

it("says the verdict that most nodes of a group have", () => {
  expect(answerOf({ dont: 1, do_it: 5, not_enough_known: 2 })).toEqual({ answer: "do_it", others: 3 });
  expect(answerOf({})).toBeUndefined();
});

it("offers files only where a plan has pools and fits", () => {
  const figures = {
    sizes: [{ page_bytes: 2 ** 21, present_pages: 5, planned_pages: 0 }],
    nodes_not_fitting: 0,
  } as NonNullable<FleetPlanGroup["figures"]>;
  expect(changesPools({ figures })).toBe(true);
  expect(changesPools({ figures: { ...figures, nodes_not_fitting: 1 } })).toBe(false);
  expect(changesPools({ figures: { ...figures, sizes: [] } })).toBe(false);
  const asToday = { page_bytes: 2 ** 21, present_pages: 5, planned_pages: 5 };
  expect(changesPools({ figures: { ...figures, sizes: [asToday] } })).toBe(false);
  expect(changesPools({ figures: null })).toBe(false);
});

it("counts a node whose fit is not known among neither", () => {
  const summary = {
    nodes: 5,
    nodes_not_fitting: 0,
    nodes_missing_pages: 1,
    locked_bytes: 0,
  } as FleetPlanSummary;
  const said = (counts: Partial<FleetPlanSummary>) => headline({ ...summary, ...counts }).split(";")[0];
  expect(said({ nodes_fit_unknown: 0 })).toBe("It fits on all 5 nodes");
  expect(said({ nodes: 1, nodes_fit_unknown: 0 })).toBe("It fits on the one node");
  expect(said({ nodes_fit_unknown: 2 })).toBe(
    "It may or may not fit on 2 of which too little is known, fits on 3",
  );
  expect(said({ nodes_not_fitting: 1, nodes_fit_unknown: 4 })).toBe(
    "It does not fit on 1 of 5 nodes, may or may not fit on 4 of which too little is known",
  );
  expect(said({ nodes_fit_unknown: null, nodes_without_facts: 5 })).not.toContain("fits on");
});

it("says which of the nodes are made up", () => {
  expect(syntheticWords(undefined)).toBe("");
  expect(syntheticWords({ nodes: 3, nodes_synthetic: 0 })).toBe("");
  expect(syntheticWords({ nodes: 201, nodes_synthetic: 200 })).toBe("200 of all 201 nodes are synthetic.");
  expect(syntheticWords({ nodes: 50, nodes_synthetic: 50 })).toBe("All nodes are synthetic.");
});
