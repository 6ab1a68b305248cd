import { expect, it } from "vitest";
import type { BacktestRow } from "@/api/types";
import { backtestGroups, partTitle, reasonsOf } from "./backtest-groups";

const row = (id: string, source: string, over: Partial<BacktestRow> = {}): BacktestRow => ({
  id,
  source,
  system: null,
  workload: id,
  page_size_a: "4K",
  page_size_b: "2M",
  published: "+8 %",
  published_percent: 8,
  predicted_percent: { low: 1, likely: 5, high: 10 },
  error_percentage_points: -3,
  status: "inside",
  is_wide: false,
  reason: null,
  group: "database_huge_pages",
  ...over,
});

const rows = [
  row("a1", "A", { predicted_percent: null, status: "no_inputs", reason: "no footprint" }),
  row("b1", "B"),
  row("c1", "C", { status: "outside" }),
  row("b2", "B", { is_wide: true }),
  row("b3", "B", { status: "by_tolerance", published_percent: 10.5 }),
  row("d1", "D", { status: "unexplained", reason: "above the bound" }),
  row("d2", "D", { status: "unexplained", reason: "above the bound" }),
  row("d3", "D", { published_percent: null }),
];

it("groups by source, with the misses first", () => {
  expect(
    backtestGroups(rows).map((group) => [
      group.source,
      group.inside.length,
      group.byTolerance.length,
      group.outside.length,
      group.unexplained.length,
      group.unpredicted.length,
    ]),
  ).toEqual([
    ["D", 0, 0, 0, 2, 1],
    ["C", 0, 0, 1, 0, 0],
    ["B", 2, 1, 0, 0, 0],
    ["A", 0, 0, 0, 0, 1],
  ]);
});

it("loses no row", () => {
  const kept = backtestGroups(rows).flatMap((group) => [
    ...group.inside,
    ...group.byTolerance,
    ...group.outside,
    ...group.unexplained,
    ...group.unpredicted,
  ]);
  expect(kept.map(({ id }) => id).sort()).toEqual(rows.map(({ id }) => id).sort());
});

it("says each reason once", () => {
  expect(reasonsOf(rows)).toEqual(["no footprint", "above the bound"]);
});

it("counts no result within the tolerance as inside, and says which ranges are wide", () => {
  expect(partTitle(rows, "results")).toBe(
    "2 of 6 results lie inside the predicted range, 1 of them in a range over 50 points.",
  );
});
