import type { Verdict } from "@/api/types";
import { type State, StateBadge } from "@/components/ui/badges";
import classes from "./answer.module.css";

export const VERDICTS: Record<Verdict["answer"], { text: string; state: State }> = {
  do_it: { text: "Do it", state: "ok" },
  do_it_after: { text: "Do it after", state: "attention" },
  dont: { text: "Don't", state: "wrong" },
  not_enough_known: { text: "Not enough known", state: "unknown" },
};

/** What to do, first, with its reason; the service says it. */
export function VerdictLine({ verdict }: { verdict: Verdict }) {
  const { text, state } = VERDICTS[verdict.answer];
  return (
    <p className={classes.verdict} data-testid="verdict">
      <StateBadge state={state} text={text} /> <span>{verdict.reason}</span>
    </p>
  );
}
