import { memo } from "react";
import { SourceBadge } from "@/components/ui/badges";
import { changesToRunning } from "../../draft/draft";
import type { DatabaseForm } from "../../draft/planner-form";
import classes from "../planner-form.module.css";

interface ObservedMarkProps {
  database: DatabaseForm;
  /** The databases of the node as they run; null where that is not known. */
  running: readonly DatabaseForm[] | null;
  /** The same when the node was chosen: what differs from it is an edit, what the node changed since is none. */
  brought: readonly DatabaseForm[] | null;
}

const MOST_NAMED = 3;

/** Whether a database that came with its node still stands in the form as it runs, and if not, what is different. */
export const ObservedMark = memo(function ObservedMark({ database, running, brought }: ObservedMarkProps) {
  if (!database.runs_as) return null;
  const observed = running?.find((other) => other.runs_as === database.runs_as);
  if (!observed) {
    const why =
      running === null ? "what runs on the node is not known" : `the node does not run ${database.runs_as}`;
    return <div className={classes.observed}>not compared with today: {why}</div>;
  }
  const changes = changesToRunning(database, observed);
  if (changes.length === 0)
    return (
      <div className={classes.observed}>
        <SourceBadge source="measured" detail={`Its node runs it as ${database.runs_as}.`} />
        as it runs today
      </div>
    );
  const rest = changes.length - MOST_NAMED;
  const began = brought?.find((other) => other.runs_as === database.runs_as);
  const isEdited = !began || changesToRunning(database, began).length > 0;
  return (
    <div className={classes.observed} data-edited={isEdited}>
      <SourceBadge source="given" detail={`Its node runs ${database.runs_as} with other settings.`} />
      <span className="hp-anywhere">
        {isEdited ? "edited; today: " : "changed on the node since; now: "}
        {changes.slice(0, MOST_NAMED).join(", ")}
        {rest > 0 && ` and ${rest} more`}
      </span>
    </div>
  );
});
