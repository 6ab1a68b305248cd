import { expect, it } from "vitest";
import type { PoolBenefit } from "@/api/types";
import { benefitRows, fittedThroughput, measuredRows } from "./benefit-curve";
import { benefitTitle } from "./pool-benefit-card";

const GIB = 2 ** 30;

// Percona's published series (5 to 115 GiB) as the planner fits it, and the planner's own estimate at 8 GiB.
const benefit: PoolBenefit = {
  points: 4,
  measured: [
    { pool_bytes: 5 * GIB, throughput: 42427.57 },
    { pool_bytes: 25 * GIB, throughput: 108077.56 },
    { pool_bytes: 75 * GIB, throughput: 133184.7 },
    { pool_bytes: 115 * GIB, throughput: 134037.09 },
  ],
  pool_bytes: 8 * GIB,
  limit: 132334.07211546373,
  slope: 118863.75848325719,
  end_bytes: 71414216758,
  error_fraction: 0.0144,
  knee_95_bytes: 40234225201,
  knee_99_bytes: 80530636800,
  throughput: 55678.302910036335,
  marginal_per_gib: 3183.19,
  extrapolated: false,
  statement: "",
};
const plain = (text: string) => text.replaceAll("\u00a0", " ");

it("draws the planner's own curve", () => {
  expect(fittedThroughput(benefit, benefit.pool_bytes)).toBeCloseTo(benefit.throughput, 3);
  expect(fittedThroughput(benefit, 200 * GIB)).toBeCloseTo(benefit.limit, 6);
});

it("stays within the measured sizes and keeps every measured point", () => {
  const rows = benefitRows(benefit);
  expect(rows[0]?.x).toBe(5 * GIB);
  expect(rows.at(-1)?.x).toBe(115 * GIB);
  expect(rows.filter(({ values }) => values.measured !== null)).toEqual(measuredRows(benefit));
  expect(new Set(rows.map(({ x }) => x)).size).toBe(rows.length);
});

it("says what the planned pool reaches, and when that is extrapolated", () => {
  expect(plain(benefitTitle("main", benefit))).toBe(
    "With 8 GiB of buffer pool main reaches 41.5% of the best measured throughput; 95% take 37.5 GiB.",
  );
  expect(plain(benefitTitle("main", { ...benefit, pool_bytes: 2 * GIB, extrapolated: true }))).toMatch(
    /^2 GiB of buffer pool lie outside what was measured for main/,
  );
});
