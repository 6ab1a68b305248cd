import type { PlanOnNode, PlanSummary } from "@/api/types";
import { type State, StateBadge } from "@/components/ui/badges";

const STATES: Record<PlanSummary["state"], { state: State; text: string }> = {
  draft: { state: "unknown", text: "Draft" },
  proposed: { state: "attention", text: "Proposed" },
  approved: { state: "ok", text: "Approved" },
  in_force: { state: "ok", text: "In force" },
  superseded: { state: "unknown", text: "Superseded" },
};

const ANSWERS: Record<PlanOnNode["answer"], { state: State; text: string }> = {
  yes: { state: "ok", text: "In force: yes" },
  partly: { state: "attention", text: "In force: partly" },
  no: { state: "attention", text: "In force: not yet" },
  unknown: { state: "unknown", text: "In force: no report yet" },
};

/** The worst first: one node on which a plan is not in force is what a reader must see. */
const WORST: readonly PlanOnNode["answer"][] = ["no", "partly", "unknown", "yes"];

/** What was decided about a plan; in force is what the node's newest report says. */
export function planStateLook(plan: Pick<PlanSummary, "state" | "in_force" | "stale">): {
  state: State;
  text: string;
} {
  if (plan.state === "in_force") {
    const answer = WORST.find((one) => plan.in_force.some((node) => node.answer === one));
    return answer ? ANSWERS[answer] : STATES.in_force;
  }
  const isStale = (plan.stale?.length ?? 0) > 0;
  if (isStale && (plan.state === "proposed" || plan.state === "approved"))
    return { state: "wrong", text: `${STATES[plan.state].text}, stale` };
  return STATES[plan.state];
}

export function PlanStateBadge({ plan }: { plan: Pick<PlanSummary, "state" | "in_force" | "stale"> }) {
  return <StateBadge {...planStateLook(plan)} />;
}
