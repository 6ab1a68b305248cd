import type { Verdict } from "@/api/types";
import { VERDICTS } from "@/components/plans/verdicts";
import { StateBadge } from "@/components/ui/badges";
import classes from "./answer.module.css";

export { VERDICTS };

/** What to do, first, with its reason; the service says it. */
export function VerdictLine({ verdict }: { verdict: Verdict }) {
  const { text, state } = VERDICTS[verdict.answer];
  return (
    <p className={classes.verdict} data-testid="verdict">
      <StateBadge state={state} text={text} /> <span>{verdict.reason}</span>
    </p>
  );
}
