import { useQuery } from "@tanstack/react-query";
import { lazy, Suspense, useMemo } from "react";
import { evidenceQuery } from "@/api/evidence";
import { loadChunk } from "@/api/problem";
import { QuestionCard } from "@/components/ui/question-card";
import { CardSkeleton } from "@/components/ui/skeletons";
import { ErrorState, StateText } from "@/components/ui/states";
import { formatBytes, formatShare } from "@/lib/units";
import { placedPool, publishedShape } from "./published-shape";

// The chart library is large: the figures are there first.
const PublishedShapeChart = lazy(() => loadChunk(() => import("./published-shape-chart")));

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

/** What more buffer pool brings where nobody measured it: the shapes that others published, marked as such. */
export function PublishedShapeCard({ name, poolBytes, workingSetBytes }: PublishedShapeCardProps) {
  const evidence = useQuery(evidenceQuery());
  const shape = useMemo(() => evidence.data && publishedShape(evidence.data.items), [evidence.data]);
  if (evidence.isPending) return <CardSkeleton height={240} />;
  if (evidence.isError)
    return (
      <QuestionCard title={`What would more buffer pool bring ${name}?`}>
        <ErrorState error={evidence.error} onRetry={() => void evidence.refetch()} bare />
      </QuestionCard>
    );
  if (!shape) return null;
  const placed = workingSetBytes === null ? null : placedPool(shape, poolBytes, workingSetBytes);
  const knee = workingSetBytes ?? 1;
  const [low, high] = shape.knee;
  const title = !placed
    ? `What would more buffer pool bring ${name}? Give its working set to see.`
    : placed.here
      ? `With ${formatBytes(poolBytes)} others reached ${between(placed.here.low, placed.here.high)} of their best.`
      : `${formatBytes(poolBytes)} of buffer pool is a smaller share of the working set than anyone published.`;
  return (
    <QuestionCard
      title={title}
      description={`Assumed: the shape of ${shape.shapes.length} published series, not this workload. Paste your own sizes and throughputs under the database to replace it.`}
    >
      <Suspense fallback={<CardSkeleton height={240} />}>
        <PublishedShapeChart
          name={name}
          shape={shape}
          poolBytes={poolBytes}
          workingSetBytes={workingSetBytes}
        />
      </Suspense>
      <StateText>
        95% of the best took{" "}
        {workingSetBytes === null
          ? `${between(low, high)} of the working set`
          : `${formatBytes(low * knee)} to ${formatBytes(high * knee)}`}
        .{" "}
        {placed?.oneMoreGib &&
          `One GiB more brought ${between(Math.max(0, placed.oneMoreGib.low), Math.max(0, placed.oneMoreGib.high))} of the best.`}{" "}
        The pool that reached 99% is taken to hold the working set.
      </StateText>
    </QuestionCard>
  );
}
