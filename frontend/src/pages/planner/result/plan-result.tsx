import type { UseQueryResult } from "@tanstack/react-query";
import { useState } from "react";
import type { ApiError, FieldError } from "@/api/problem";
import type { PlanPreview } from "@/api/types";
import { CardSkeleton } from "@/components/ui/skeletons";
import { ErrorState, StateText } from "@/components/ui/states";
import classes from "../form/planner-form.module.css";
import { Answer } from "./answer";
import { ArtifactsCard } from "./artifacts-card";
import { FindingsCard } from "./findings-card";
import { ForecastsCard } from "./forecasts-card";
import { GainsCard } from "./gains-card";
import { InstancesCard } from "./instances-card";
import { KubernetesCard } from "./kubernetes-card";
import { LedgerCard } from "./ledger-card";
import { NotesCard } from "./notes-card";
import { PoolBenefitCard } from "./pool-benefit-card";
import { RiskCard } from "./risk-card";

interface PlanResultProps {
  preview: UseQueryResult<PlanPreview>;
  problem: ApiError | null;
  /** Errors that belong to no input of the form. */
  unplaced: readonly FieldError[];
  /** Databases with a pasted table of throughput. */
  tables: readonly string[];
  nodeId: string | null;
  isWaiting: boolean;
}

/** The plan, live. A wrong input keeps the last plan in sight, dimmed, and says what to mend. */
export function PlanResult(props: PlanResultProps) {
  const { preview, problem, unplaced, tables, nodeId, isWaiting } = props;
  const data = useLastGood(preview.data);
  const onlyFields = problem !== null && problem.fieldErrors.length > 0 && unplaced.length === 0;
  return (
    <div className={classes.result} aria-live="polite" aria-busy={preview.isFetching || isWaiting}>
      {problem && onlyFields && (
        <div role="alert">
          <StateText>
            No plan yet:{" "}
            {problem.fieldErrors.length === 1
              ? "one input is not valid. It is marked in the form."
              : `${problem.fieldErrors.length} inputs are not valid. They are marked in the form.`}
            {data ? " Below is the last plan." : ""}
          </StateText>
        </div>
      )}
      {problem && !onlyFields && <ErrorState error={problem} onRetry={() => void preview.refetch()} />}
      {!data && !problem && (
        <>
          <CardSkeleton height={80} />
          <CardSkeleton height={180} />
          <CardSkeleton height={140} />
        </>
      )}
      {data && (
        <Cards
          data={data}
          tables={tables}
          nodeId={nodeId}
          stale={preview.isPlaceholderData || problem !== null}
        />
      )}
    </div>
  );
}

/** The newest plan that could be computed: it stays in sight while an input is being mended. */
function useLastGood(data: PlanPreview | undefined): PlanPreview | undefined {
  const [last, setLast] = useState(data);
  if (data !== undefined && data !== last) setLast(data);
  return data ?? last;
}

interface CardsProps extends Pick<PlanResultProps, "tables" | "nodeId"> {
  data: PlanPreview;
  stale: boolean;
}

function Cards({ data, tables, nodeId, stale }: CardsProps) {
  const { plan, artifacts } = data;
  return (
    <div className={classes.result} data-stale={stale}>
      <Answer plan={plan} />
      <LedgerCard plan={plan} nodeId={nodeId} />
      <RiskCard plan={plan} />
      <FindingsCard plan={plan} />
      <GainsCard plan={plan} />
      <PoolBenefitCard plan={plan} tables={tables} />
      <ArtifactsCard artifacts={artifacts} />
      <InstancesCard plan={plan} />
      <ForecastsCard plan={plan} />
      <KubernetesCard plan={plan} />
      <NotesCard plan={plan} />
    </div>
  );
}
