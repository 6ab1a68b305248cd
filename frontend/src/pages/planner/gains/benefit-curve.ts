import type { PoolBenefit } from "@/api/types";
import type { ChartRow } from "@/components/charts/chart-types";

function throughputBySize(points: PoolBenefit["fitted"]): Map<number, number> {
  return new Map(points.map(({ pool_bytes: size, throughput }) => [size, throughput]));
}

/** The measured sizes with the planner's curve beside them. */
export function measuredRows(benefit: PoolBenefit): ChartRow[] {
  const fitted = throughputBySize(benefit.fitted);
  return benefit.measured.map(({ pool_bytes: x, throughput }) => ({
    x,
    values: { fitted: fitted.get(x) ?? null, measured: throughput },
  }));
}

/** The planner's curve with the measured points on it: past them nothing is drawn, since nothing is known. */
export function benefitRows(benefit: PoolBenefit): ChartRow[] {
  const measured = throughputBySize(benefit.measured);
  return benefit.fitted.map(({ pool_bytes: x, throughput }) => ({
    x,
    values: { fitted: throughput, measured: measured.get(x) ?? null },
  }));
}
