import { expect, test } from "vitest";
import { ApiError } from "@/api/problem";
import type { PlanOnNode, PlanSummary } from "@/api/types";
import { nextSteps, withKnownDoubt } from "./plan-buttons";
import { planStateLook } from "./plan-state-badge";

const on = (answer: PlanOnNode["answer"]): PlanOnNode => ({
  node_id: "n",
  node_name: "db-7",
  answer,
  wrong: [],
  since: "2026-11-24T03:44:00Z",
  verified_at: null,
  source: "hand",
  by: "ann",
});
const plan = (state: PlanSummary["state"], ...nodes: PlanOnNode[]) => ({
  state,
  in_force: nodes,
  node_id: "n",
  stale: null,
});
const labels = (value: Parameters<typeof nextSteps>[0]) => nextSteps(value).map(({ step }) => step);

test("each state has its next step and its way back", () => {
  expect(labels(plan("draft"))).toEqual(["propose"]);
  expect(labels(plan("proposed"))).toEqual(["withdraw", "approve"]);
  expect(labels(plan("approved"))).toEqual(["withdraw", "in-force"]);
  expect(labels({ ...plan("approved"), node_id: null })).toEqual(["withdraw"]);
  expect(labels(plan("superseded"))).toEqual([]);
});

test("a fit that is not known is approved only after its approver was told", () => {
  const steps = nextSteps(plan("proposed"));
  const refusal = (type: string) =>
    new ApiError({
      status: 409,
      type: `https://hugeplan.dev/problems/${type}`,
      title: "",
      detail: "",
      requestId: null,
    });
  const after = (error: Error | null) => withKnownDoubt(steps, error).map(({ step }) => step);
  expect(after(null)).toEqual(["withdraw", "approve"]);
  expect(after(refusal("conflict"))).toEqual(["withdraw", "approve"]);
  expect(after(refusal("plan-fit-unknown"))).toEqual(["withdraw", "approve-unknown-fit"]);
});

test("what has happened on the node is not taken back with a click", () => {
  expect(labels(plan("in_force", on("no")))).toEqual(["end-in-force"]);
  expect(labels(plan("in_force", on("yes")))).toEqual([]);
  // Nothing happened is not said of a node that follows a part of it.
  expect(nextSteps(plan("in_force", on("no")))[0]?.label).toContain("nothing happened");
  expect(nextSteps(plan("in_force", on("partly")))[0]?.label).toBe("Take back");
});

test("in force is what the worst of its nodes says", () => {
  expect(planStateLook(plan("in_force", on("yes"), on("no")))).toEqual({
    state: "attention",
    text: "In force: not yet",
  });
  expect(planStateLook(plan("in_force", on("yes"))).state).toBe("ok");
  // No report yet is not in order: it is not known.
  expect(planStateLook(plan("in_force", on("unknown"))).state).toBe("unknown");
});

test("a stale proposal never looks fine", () => {
  const stale = [{ what: "memory", was: "64 GiB", now: "32 GiB" }];
  expect(planStateLook({ ...plan("approved"), stale })).toEqual({ state: "wrong", text: "Approved, stale" });
  expect(planStateLook({ ...plan("approved"), stale: [] }).state).toBe("ok");
  expect(labels({ ...plan("proposed"), stale })).toEqual(["withdraw"]);
  expect(labels({ ...plan("proposed"), stale: [] })).toEqual(["withdraw", "approve"]);
  // Beside "plan it again" no button asks to go on.
  expect(nextSteps({ ...plan("approved"), stale }).filter(({ isAside }) => !isAside)).toEqual([]);
  expect(nextSteps({ ...plan("approved"), stale: [] }).filter(({ isAside }) => !isAside)).toHaveLength(1);
});
