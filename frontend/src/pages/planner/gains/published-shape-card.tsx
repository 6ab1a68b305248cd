import { useQuery } from "@tanstack/react-query";
import { lazy, Suspense } from "react";
import { poolShapeQuery } from "@/api/evidence";
import { loadPart } from "@/api/load-part";
import { FoldCard } from "@/components/ui/fold-card";
import { CardSkeleton } from "@/components/ui/skeletons";
import { ErrorState, StateText } from "@/components/ui/states";
import { formatBytes, formatShare } from "@/lib/units";

// The chart library is large: the figures are there first.
const PublishedShapeChart = lazy(() => loadPart(() => import("./published-shape-chart")));

interface PublishedShapeCardProps {
  name: string;
  poolBytes: number;
  /** What the workload touches often, as given; null: the pool cannot be placed on the curve. */
  workingSetBytes: number | null;
}

function between(low: number, high: number): string {
  const [from, to] = [formatShare(low), formatShare(high)];
  return from === to ? from : `${from} to ${to}`;
}

/** What more buffer pool brings where it was not measured: the shape that others published, marked as such. */
export function PublishedShapeCard({ name, poolBytes, workingSetBytes }: PublishedShapeCardProps) {
  const query = useQuery(poolShapeQuery(poolBytes, workingSetBytes));
  if (query.isPending) return <CardSkeleton height={60} />;
  if (query.isError)
    return (
      <FoldCard title={`What would more buffer pool bring ${name}?`}>
        <ErrorState error={query.error} onRetry={() => void query.refetch()} bare />
      </FoldCard>
    );
  const { here, knee, one_more_gib: oneMoreGib, series } = query.data;
  const title =
    workingSetBytes === null
      ? `What would more buffer pool bring ${name}? Give its working set to see.`
      : here
        ? `With ${formatBytes(poolBytes)} others reached ${between(here.low, here.high)} of their best.`
        : `${formatBytes(poolBytes)} of buffer pool is a smaller share of the working set than anyone published.`;
  return (
    <FoldCard title={title}>
      <StateText>
        Assumed: the shape of {series} published series, not this workload. Paste your own sizes and
        throughputs under the database to replace it.
      </StateText>
      <Suspense fallback={<CardSkeleton height={240} />}>
        <PublishedShapeChart
          name={name}
          shape={query.data}
          poolBytes={poolBytes}
          workingSetBytes={workingSetBytes}
        />
      </Suspense>
      <StateText>
        95 % of the best took{" "}
        {workingSetBytes === null
          ? `${between(knee.low, knee.high)} of the working set`
          : `${formatBytes(knee.low * workingSetBytes)} to ${formatBytes(knee.high * workingSetBytes)}`}
        . {oneMoreGib && `One GiB more brought ${between(oneMoreGib.low, oneMoreGib.high)} of the best.`} The
        pool that reached 99 % is assumed to hold the working set.
      </StateText>
    </FoldCard>
  );
}
