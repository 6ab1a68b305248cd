import { describe, expect, it } from "vitest";
import type { CurvePoint, RunCurve, TlbLevel } from "@/api/types";
import {
  bestLevels,
  curveRows,
  curveSeries,
  layoutLabel,
  measuredCurves,
  missingCurves,
  reachReferences,
} from "./curve-series";
import { statusReason } from "./missing-curves";

const point = (x: number, ns: number | null): CurvePoint => ({
  x,
  ns_min: ns,
  ns_p10: ns === null ? null : ns - 1,
  ns_p50: ns,
  ns_p90: ns === null ? null : ns + 1,
  ns_mad: null,
  batches: 25,
  dropped: 0,
});

const curve = (over: Partial<RunCurve>): RunCurve => ({
  section: "latency",
  beside_backing: null,
  name: "latency",
  x_name: "footprint_bytes",
  backing: "4K",
  backing_kind: "base",
  page_bytes: 4096,
  layout: "line_per_page",
  footprint_bytes: null,
  granted_fraction: 1,
  status: "ok",
  reason: null,
  points: [point(65536, 5), point(131072, 6)],
  ...over,
});

const level = (over: Partial<TlbLevel>): TlbLevel => ({
  level: 1,
  kind: "data",
  page_bytes: 4096,
  entries: 96,
  entries_min: null,
  entries_max: null,
  ways: 6,
  source: "cpuid",
  confidence: "high",
  note: null,
  ...over,
});

describe("curves to rows", () => {
  const huge = curve({
    backing: "2M",
    backing_kind: "hugetlb",
    page_bytes: 2097152,
    points: [point(131072, 3)],
  });
  it("joins points by x and leaves what was not measured out", () => {
    const rows = curveRows([
      { key: "a", curve: curve({}) },
      { key: "b", curve: huge },
    ]);
    expect(rows).toEqual([
      { x: 65536, values: { a: 5 }, ranges: { a: [4, 6] } },
      { x: 131072, values: { a: 6, b: 3 }, ranges: { a: [5, 7], b: [2, 4] } },
    ]);
  });
  it("sorts base pages first and tells measured from missing", () => {
    const skipped = curve({
      backing: "1G",
      backing_kind: "hugetlb",
      page_bytes: 2 ** 30,
      status: "no_free_hugepages",
      points: [],
    });
    expect(measuredCurves([huge, curve({}), skipped]).map((entry) => entry.backing)).toEqual(["4K", "2M"]);
    expect(missingCurves([huge, curve({}), skipped]).map((entry) => entry.backing)).toEqual(["1G"]);
  });
  it("reads the backing of a document that only has its label", () => {
    expect(curveSeries(curve({ backing: "THP", backing_kind: null, page_bytes: 2097152 }), "k").short).toBe(
      "THP",
    );
    expect(curveSeries(huge, "k").marker).toBe("triangle");
  });
});

describe("reach", () => {
  const levels = [
    level({ entries: 64, source: "catalogue" }),
    level({ entries: 96, source: "measured" }),
    level({ level: 2, kind: "unified", entries: 2048, source: "cpuid" }),
    level({ kind: "instr", entries: 128, source: "measured" }),
    level({ level: 2, kind: "unified", page_bytes: 2097152, entries: 2048 }),
  ];
  it("prefers what was measured", () => {
    expect(bestLevels(levels).find((best) => best.level === 1 && best.kind === "data")?.entries).toBe(96);
    expect(
      bestLevels([level({ entries: null, source: "measured" }), level({ entries: 72 })])[0]?.entries,
    ).toBe(72);
  });
  it("prefers a confident catalogue to a CPUID that the hypervisor falsifies", () => {
    const cpuid = level({ entries: 128, source: "cpuid", confidence: "low" });
    const catalogue = level({ entries: 4096, source: "catalogue", confidence: "high" });
    expect(bestLevels([cpuid, catalogue])[0]?.entries).toBe(4096);
    expect(bestLevels([catalogue, { ...cpuid, confidence: "high" }])[0]?.entries).toBe(128);
    expect(bestLevels([{ ...cpuid, confidence: "constructor" }, catalogue])[0]?.entries).toBe(4096);
  });
  it("labels each data level of the base page once", () => {
    expect(reachReferences(levels, 4096).map(({ x, label }) => [x, label.replaceAll("\u00a0", " ")])).toEqual(
      [
        [393216, "L1 DTLB reach at 4K: 384 KiB"],
        [8388608, "L2 TLB reach at 4K: 8 MiB"],
      ],
    );
  });
});

it("shows an agent's words that every object has as they are", () => {
  expect(layoutLabel("toString")).toBe("toString");
  expect(statusReason({ status: "constructor", reason: null })).toBe("constructor");
});
