import { expect, it } from "vitest";
import type { FleetEvent } from "@/api/types";
import { groupChanges } from "./changes";

const event = (over: Partial<FleetEvent>): FleetEvent => ({
  id: 1,
  at: "2026-11-22T09:00:00Z",
  kind: "finding_opened",
  node_id: "a",
  node_name: "db-1",
  code: "pool_idle",
  subject: "2M pool",
  state: "attention",
  previous_state: null,
  text: "A large part of the pool is idle",
  ...over,
});

it("says once what changed on many nodes, and counts a node once", () => {
  const changes = groupChanges([
    event({ id: 9, node_id: "c", node_name: "db-3", at: "2026-11-22T09:09:00Z" }),
    event({ id: 8, kind: "finding_closed", node_id: "c", node_name: "db-3" }),
    event({ id: 7, node_id: "b", node_name: "db-2" }),
    event({ id: 6, node_id: "b", node_name: "db-2", subject: "1G pool" }),
  ]);
  expect(changes.map(({ count, at }) => [count, at])).toEqual([
    [2, "2026-11-22T09:09:00Z"],
    [1, "2026-11-22T09:00:00Z"],
  ]);
});

it("keeps changes without a code apart by their text", () => {
  const plain = { code: null, state: null, kind: "plan_in_force_set" as const };
  expect(groupChanges([event({ ...plain, text: "one" }), event({ ...plain, text: "two" })])).toHaveLength(2);
});

it("counts no node for what is about none, and one machine that came back under its name once", () => {
  const done = {
    node_id: null,
    node_name: null,
    code: null,
    state: null,
    kind: "fleet_plan_finished" as const,
  };
  const changes = groupChanges([
    event({ id: 9, ...done, text: "The fleet plan is done." }),
    event({ id: 8, ...done, text: "The fleet plan is done." }),
    event({ id: 7, node_id: "b", node_name: "db-1" }),
    event({ id: 6, node_id: "a", node_name: "db-1" }),
  ]);
  expect(changes.map(({ count }) => count)).toEqual([0, 1]);
});
