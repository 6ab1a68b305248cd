import { useEffect } from "react";
import type { PreviewInput } from "@/api/plans";
import type { ApiError, FieldError } from "@/api/problem";
import type { NodeDetail, PlanPreview } from "@/api/types";
import type { ResizePool } from "@/components/memory-map/memory-map";
import { CardSkeleton } from "@/components/ui/skeletons";
import { ErrorState, StateText } from "@/components/ui/states";
import { ApplyCard } from "./apply-card";
import { FindingsCard } from "./findings-card";
import { ForecastsCard } from "./forecasts-card";
import { GainsCard } from "./gains-card";
import { InTurn } from "./in-turn";
import { InputsCard } from "./inputs-card";
import { InstancesCard } from "./instances-card";
import { KubernetesCard } from "./kubernetes-card";
import { LedgerCard } from "./ledger-card";
import classes from "./plan-result.module.css";
import { fits } from "./plan-state";
import { PoolBenefitCard } from "./pool-benefit-card";
import { RiskCard } from "./risk-card";

interface PlanProblemsProps {
  problem: ApiError | null;
  /** Errors that belong to no input of the form. */
  unplaced: readonly FieldError[];
  hasPlan: boolean;
  onRetry: () => void;
}

/** Why there is no plan of what stands in the form. */
export function PlanProblems({ problem, unplaced, hasPlan, onRetry }: PlanProblemsProps) {
  if (!problem) return null;
  const count = problem.fieldErrors.length;
  if (count === 0 || unplaced.length > 0) return <ErrorState error={problem} onRetry={onRetry} />;
  return (
    <div role="alert">
      <StateText>
        No plan yet:{" "}
        {count === 1
          ? "one input is not valid. It is marked in the form."
          : `${count} inputs are not valid. They are marked in the form.`}
        {hasPlan ? " Below is the last plan." : ""}
      </StateText>
    </div>
  );
}

interface PlanResultProps {
  shown: PlanPreview | null;
  hasProblem: boolean;
  node: NodeDetail | undefined;
  /** What the plan was asked with. */
  input: PreviewInput;
  /** Databases with a pasted table of throughput. */
  tables: readonly string[];
  /** The working set of each database in bytes, where it is given. */
  workingSets: ReadonlyMap<string, number>;
  onResizePool: ResizePool;
  canResizePool: (pageBytes: number) => boolean;
  /** Called once every picture shows an answer. */
  onDrawn: (shown: PlanPreview) => void;
}

/** The pictures beneath the answer. */
export function PlanResult({
  shown,
  hasProblem,
  node,
  input,
  tables,
  workingSets,
  onResizePool,
  canResizePool,
  onDrawn,
}: PlanResultProps) {
  if (!shown) {
    return hasProblem ? null : (
      <div className={classes.result} role="status" aria-label="Loading">
        <CardSkeleton height={80} />
        <CardSkeleton height={180} />
        <CardSkeleton height={140} />
      </div>
    );
  }
  const { plan } = shown;
  return (
    <div className={classes.result}>
      <InTurn>
        <LedgerCard plan={plan} node={node} onResize={onResizePool} canResize={canResizePool} />
      </InTurn>
      <InTurn>
        <GainsCard plan={plan} />
      </InTurn>
      <InTurn>
        <PoolBenefitCard plan={plan} tables={tables} workingSets={workingSets} />
      </InTurn>
      <InTurn>
        <RiskCard plan={plan} />
        <FindingsCard plan={plan} />
      </InTurn>
      <InTurn>
        <ApplyCard fits={fits(plan)} withheld={shown.artifacts_withheld} input={input} />
        <InstancesCard plan={plan} />
      </InTurn>
      <InTurn>
        <ForecastsCard plan={plan} />
        <KubernetesCard plan={plan} />
        <InputsCard plan={plan} />
      </InTurn>
      <InTurn>
        <Drawn shown={shown} onDrawn={onDrawn} />
      </InTurn>
    </div>
  );
}

/** The last to have its turn: then all the others have had theirs. */
function Drawn({ shown, onDrawn }: { shown: PlanPreview; onDrawn: (shown: PlanPreview) => void }) {
  useEffect(() => onDrawn(shown), [shown, onDrawn]);
  return null;
}
