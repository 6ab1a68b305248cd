import { expect, it } from "vitest";
import type { Pressure, PressurePoint, RunComparison } from "@/api/types";
import { comparableFootprints, comparedBackings, comparedPressure } from "./pressure-comparison";

const MIB = 2 ** 20;

const point = (backing: string, footprint: number, lines: number, saving: number): PressurePoint => ({
  backing,
  backing_kind: backing === "THP" ? "thp" : "hugetlb",
  page_bytes: 2 * MIB,
  footprint_bytes: footprint * MIB,
  lines_between: lines,
  wait_ns: 0,
  period_ns: null,
  base_ns_p50: 300,
  ns_p50: 300 - saving,
  delta_ns: -saving,
  ci95_low_ns: -saving - 5,
  ci95_high_ns: -saving + 5,
  pairs: 6,
});

const pressure = (points: PressurePoint[]): Pressure => ({
  status: "ok",
  reason: null,
  region_bytes: 512 * MIB,
  region_backing: "THP",
  lines_per_page: 16,
  points,
});

const comparison = {
  pressures: [
    pressure([point("THP", 64, 0, 4), point("THP", 64, 256, 90), point("2M", 512, 256, 150)]),
    null,
    pressure([
      point("THP", 64, 256, 70),
      { ...point("THP", 64, 16, 30), wait_ns: 8000 },
      point("THP", 512, 0, 9),
    ]),
  ],
} as RunComparison;

it("compares a footprint and a page size only where two runs measured both", () => {
  expect(comparableFootprints(comparison)).toEqual([64 * MIB]);
  expect(comparedBackings(comparison, 64 * MIB).map(({ short }) => short)).toEqual(["THP"]);
  expect(comparedBackings(comparison, 512 * MIB)).toEqual([]);
});

it("draws one line a run, and leaves a gap where a run has no point", () => {
  const { rows, series } = comparedPressure(comparison, 64 * MIB, null);
  expect(series.map(({ short, marker }) => [short, marker])).toEqual([
    ["A THP", "circle"],
    ["C THP", "triangle"],
  ]);
  expect(rows).toEqual([
    { x: 0, values: { "0:THP": 4 }, ranges: { "0:THP": [-1, 9] } },
    { x: 256, values: { "0:THP": 90, "2:THP": 70 }, ranges: { "0:THP": [85, 95], "2:THP": [65, 75] } },
  ]);
});
