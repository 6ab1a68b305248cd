import type { Plan } from "@/api/types";
import type { State } from "@/components/ui/badges";
import { overcommitBytes } from "./ledger-parts";

/** Whether the plan fits the node. */
export function fits(plan: Plan): boolean {
  return plan.feasible !== false && overcommitBytes(plan) === 0;
}

/** The verdict that colours the answer: what does not fit is wrong, what is not known is not good. */
export function planState(plan: Plan): State {
  if (!fits(plan) || plan.findings.some(({ state }) => state === "wrong")) return "wrong";
  if (plan.risk.meets_policy === false) return "attention";
  if (plan.findings.some(({ state }) => state === "attention")) return "attention";
  if (plan.risk.meets_policy === null) return "unknown";
  return "ok";
}
