import { expect, it } from "vitest";
import { compareSearch, fleetPlanResultSearch, fleetPlanSearch, loginSearch, nodesSearch } from "./search";

it("keeps only local paths after the login", () => {
  expect(loginSearch({ next: "/planner?node=1" }).next).toBe("/planner?node=1");
  for (const next of ["/", "/nodes/0-1/", "/nodes?label=%5B%22a%2Fb%22%5D&q=%C3%A9", "/n/é.x?a=../b"]) {
    expect(loginSearch({ next }).next).toBe(next);
  }
  const ways = [
    "//evil.example",
    "/\\evil.example",
    "/\t/evil.example",
    "/\n/evil.example",
    "/\u0000/x",
    "/\u202e",
  ];
  const further = [
    "/.//evil.example",
    "/a/..//evil.example",
    "/a//b",
    "/ x",
    "/?\t",
    "https://evil.example",
    "x",
    7,
  ];
  for (const next of [...ways, ...further]) {
    expect(loginSearch({ next }).next).toBeUndefined();
  }
});

it("opens a damaged link with defaults", () => {
  const broken = {
    q: 7,
    state: "odd",
    label: [1, "env=prod", "x".repeat(257)],
    sort: "constructor",
    stale: "no",
  };
  expect(nodesSearch(broken)).toEqual({
    q: undefined,
    label: ["env=prod"],
    machine_type: undefined,
    group: undefined,
    architecture: undefined,
    finding: undefined,
    state: undefined,
    plan_state: undefined,
    stale: undefined,
    synthetic: undefined,
    sort: undefined,
    down: undefined,
    view: undefined,
    columns: undefined,
  });
  expect(compareSearch({ runs: "x" }).runs).toBeUndefined();
  expect(fleetPlanResultSearch({ severity: "bad", group: 1.5, q: "db" })).toEqual({
    severity: undefined,
    group: undefined,
    q: "db",
  });
});

it("keeps what a reader selected", () => {
  const selected = { label: ["env=prod", "role"], machine_type: "AMD EPYC 9R14, KVM", stale: false };
  expect(nodesSearch({ ...selected, sort: "pool_idle_bytes", down: true })).toMatchObject({
    ...selected,
    sort: "pool_idle_bytes",
    down: true,
  });
  expect(fleetPlanSearch({ ...selected, saved: "x" })).toMatchObject({ ...selected, saved: "x" });
});
