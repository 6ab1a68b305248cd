import type { Plan, Verdict } from "@/api/types";
import { verdictLook } from "@/components/plans/verdicts";
import { StateBadge } from "@/components/ui/badges";
import classes from "./answer.module.css";

/** How a plan's verdict looks. */
export function planLook(plan: Plan, verdict: Verdict) {
  const pools = plan.pools.map(({ present_pages: now, pages }) => ({ now, planned: pages }));
  return verdictLook(verdict.answer, pools, plan.fits === true && plan.risk.meets_policy !== false);
}

/** What to do, first, with its reason; the service says it. */
export function VerdictLine({ plan, verdict }: { plan: Plan; verdict: Verdict }) {
  const { text, state } = planLook(plan, verdict);
  return (
    <p className={classes.verdict} data-testid="verdict">
      <StateBadge state={state} text={text} /> <span>{verdict.reason}</span>
    </p>
  );
}
