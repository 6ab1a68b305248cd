import type { PoolBenefit } from "@/api/types";
import type { ChartRow } from "@/components/charts/chart-types";

type Fit = Pick<PoolBenefit, "limit" | "slope" | "end_bytes">;

/** The fitted throughput at a pool size: X(B) = [Xc^-4 + (max(0, ln(D / B)) / C)^4]^(-1/4), as the planner has it. */
export function fittedThroughput({ limit, slope, end_bytes: end }: Fit, poolBytes: number): number {
  const misses = Math.max(0, Math.log(end / poolBytes)) / slope;
  return (limit ** -4 + misses ** 4) ** -0.25;
}

const STEPS = 48;

/** The measured sizes with the curve beside them. */
export function measuredRows(benefit: PoolBenefit): ChartRow[] {
  return benefit.measured.map(({ pool_bytes: x, throughput }) => ({
    x,
    values: { fitted: fittedThroughput(benefit, x), measured: throughput },
  }));
}

/** The measured sizes and the curve between them: past them nothing is drawn, since nothing is known. */
export function benefitRows(benefit: PoolBenefit): ChartRow[] {
  const sizes = benefit.measured.map(({ pool_bytes }) => pool_bytes);
  const [first, last] = [Math.min(...sizes), Math.max(...sizes)];
  const between = Array.from(
    { length: STEPS - 1 },
    (_, step) => first + ((last - first) * (step + 1)) / STEPS,
  );
  const drawn = between
    .filter((x) => !sizes.includes(x))
    .map((x) => ({ x, values: { fitted: fittedThroughput(benefit, x), measured: null } }));
  return [...measuredRows(benefit), ...drawn].sort((a, b) => a.x - b.x);
}
