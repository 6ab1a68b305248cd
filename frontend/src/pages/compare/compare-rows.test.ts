import { expect, it } from "vitest";
import type { Run, RunComparison, RunCurve } from "@/api/types";
import { comparableBackings, comparableLayouts, comparedSeries, runLabels } from "./compare-rows";

const run = (id: string, node: string, started: string): Run => ({
  id,
  node_id: node,
  node_name: node,
  synthetic: false,
  started_at: started,
  bad: false,
  bad_reason: null,
  profile: "quick",
  command: "run",
  tool_version: "0.1.0",
  duration_seconds: 1,
  sections: [],
});

const curve = (backing: string, ns: number | null): RunCurve => ({
  section: "latency",
  beside_backing: null,
  name: backing,
  x_name: "footprint_bytes",
  backing,
  backing_kind: backing === "4K" ? "base" : "hugetlb",
  page_bytes: backing === "4K" ? 4096 : 2097152,
  layout: "random_64b",
  footprint_bytes: null,
  granted_fraction: 1,
  status: "ok",
  reason: null,
  points: [{ x: 65536, ns_min: ns, ns_p10: ns, ns_p50: ns, ns_p90: ns, ns_mad: 0, batches: 1, dropped: 0 }],
});

const base = { section: "latency", name: "n", x_name: "footprint_bytes", layout: "random_64b" };
const comparison: RunComparison = {
  runs: [run("a", "db-7", "2026-11-20T12:00:00Z"), run("b", "db-7", "2026-11-20T13:00:00Z")],
  geometries: [null, null],
  pressures: [null, null],
  curves: [
    { ...base, backing: "2M", curves: [curve("2M", 3), null] },
    { ...base, backing: "4K", curves: [curve("4K", 5), curve("4K", 6)] },
    { ...base, backing: "1G", curves: [null, curve("1G", null)] },
  ],
};

it("tells runs of one node apart by their moment", () => {
  expect(runLabels(comparison.runs)).toEqual(["db-7 11-20 12:00", "db-7 11-20 13:00"]);
  expect(runLabels([run("a", "x", ""), run("b", "y", "")])).toEqual(["x", "y"]);
});

it("compares only what at least two runs measured, and draws what is there", () => {
  expect(comparableLayouts(comparison)).toEqual(["random_64b"]);
  expect(comparableBackings(comparison, "random_64b")).toEqual(["4K"]);
  const series = comparedSeries(comparison, "random_64b", null);
  expect(series.map(({ series: { key, marker } }) => [key, marker])).toEqual([
    ["0:4K", "circle"],
    ["1:4K", "square"],
    ["0:2M", "circle"],
  ]);
  expect(series.map(({ series: { short } }) => short)).toEqual(["A 4K", "B 4K", "A 2M"]);
  expect(comparedSeries(comparison, "random_64b", "2M")).toHaveLength(1);
});
