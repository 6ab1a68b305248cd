import { lazy, Suspense } from "react";
import { loadPart } from "@/api/load-part";
import type { InstancePlan, PoolBenefit } from "@/api/types";
import { SourceBadge } from "@/components/ui/badges";
import { FoldCard } from "@/components/ui/fold-card";
import { CardSkeleton } from "@/components/ui/skeletons";
import { StateText } from "@/components/ui/states";
import { Term } from "@/components/ui/term";
import { Bytes } from "@/components/ui/values";
import { formatBytes, formatShare, formatThroughput } from "@/lib/units";
import classes from "../databases/instances-card.module.css";
import { PublishedShapeCard } from "./published-shape-card";

// The chart library is large and most plans have no table: it is loaded with the first curve.
const PoolBenefitChart = lazy(() => loadPart(() => import("./pool-benefit-chart")));

interface PoolBenefitCardProps {
  instance: InstancePlan;
  /** Whether a table was pasted for it: without a curve it is told why. */
  hasTable: boolean;
  /** Its working set in bytes, where it is given. */
  workingSetBytes: number | null;
}

/** What more buffer pool brings a database: by its own table, else the shape that others published. */
export function PoolBenefitCard({ instance, hasTable, workingSetBytes }: PoolBenefitCardProps) {
  const { name, demand, pool_benefit: benefit } = instance;
  if (benefit) return <Benefit name={name} benefit={benefit} />;
  if (!hasTable)
    return demand.pool_bytes ? (
      <PublishedShapeCard name={name} poolBytes={demand.pool_bytes} workingSetBytes={workingSetBytes} />
    ) : null;
  return (
    <FoldCard title={`What would more buffer pool bring ${name}?`} open>
      <StateText>
        Unknown: a curve needs at least four measured pool sizes, and an engine with a buffer pool.
      </StateText>
    </FoldCard>
  );
}

/** The best throughput that was measured; it need not be at the largest pool. */
function best(benefit: PoolBenefit): number {
  return Math.max(...benefit.measured.map(({ throughput }) => throughput));
}

export function benefitTitle(name: string, benefit: PoolBenefit): string {
  const reached = formatShare(benefit.throughput / best(benefit));
  const pool = formatBytes(benefit.pool_bytes);
  if (benefit.extrapolated)
    return `${pool} of buffer pool lie outside what was measured for ${name}: about ${reached} of the best throughput.`;
  return `With ${pool} of buffer pool ${name} reaches ${reached} of the best measured throughput; 95 % needs ${formatBytes(benefit.knee_95_bytes)}.`;
}

function Benefit({ name, benefit }: { name: string; benefit: PoolBenefit }) {
  return (
    <FoldCard title={benefitTitle(name, benefit)} open>
      <StateText>From the table of {benefit.points} pool sizes, in its own unit of throughput.</StateText>
      <Suspense fallback={<CardSkeleton height={240} />}>
        <PoolBenefitChart name={name} benefit={benefit} />
      </Suspense>
      <dl className={classes.figures}>
        <Figure name="Throughput at the planned pool" source={benefit.extrapolated ? "assumed" : "computed"}>
          {formatThroughput(benefit.throughput)}
        </Figure>
        <Figure name="One GiB more brings" source={benefit.extrapolated ? "assumed" : "computed"}>
          {formatThroughput(benefit.marginal_per_gib)} (
          {formatShare(benefit.marginal_per_gib / best(benefit))} of the best)
        </Figure>
        <Figure name={<Term name="knee">Pool for 99 % of the best</Term>} source="computed">
          <Bytes value={benefit.knee_99_bytes} />
        </Figure>
        <Figure name="Error of the curve" source="computed">
          {formatShare(benefit.error_fraction)} of the best
        </Figure>
      </dl>
    </FoldCard>
  );
}

function Figure(props: { name: React.ReactNode; source: "computed" | "assumed"; children: React.ReactNode }) {
  return (
    <div>
      <dt>
        {props.name} <SourceBadge source={props.source} />
      </dt>
      <dd>{props.children}</dd>
    </div>
  );
}
