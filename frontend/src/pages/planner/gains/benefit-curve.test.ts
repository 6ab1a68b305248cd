import { expect, it } from "vitest";
import type { PoolBenefit } from "@/api/types";
import { benefitRows, measuredRows } from "./benefit-curve";
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
  fitted: [
    { pool_bytes: 5 * GIB, throughput: 42100 },
    { pool_bytes: 15 * GIB, throughput: 79000 },
    { pool_bytes: 25 * GIB, throughput: 108000 },
    { pool_bytes: 75 * GIB, throughput: 132300 },
    { pool_bytes: 115 * GIB, throughput: 132334 },
  ],
};
const plain = (text: string) => text.replaceAll("\u00a0", " ");

it("draws the planner's own curve, and every measured point on it", () => {
  const rows = benefitRows(benefit);
  expect(rows.map(({ x, values }) => [x / GIB, values.fitted])).toEqual([
    [5, 42100],
    [15, 79000],
    [25, 108000],
    [75, 132300],
    [115, 132334],
  ]);
  expect(rows.filter(({ values }) => values.measured !== null)).toEqual(measuredRows(benefit));
});

it("says what the planned pool reaches, and when that is extrapolated", () => {
  expect(plain(benefitTitle("main", benefit))).toBe(
    "With 8 GiB of buffer pool main reaches 41.5 % of the best measured throughput; 95 % needs 37.5 GiB.",
  );
  expect(plain(benefitTitle("main", { ...benefit, pool_bytes: 2 * GIB, extrapolated: true }))).toMatch(
    /^2 GiB of buffer pool lie outside what was measured for main/,
  );
});
