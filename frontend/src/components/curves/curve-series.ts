import type { RunCurve, TlbLevel } from "@/api/types";
import type { ChartReference, ChartRow, ChartSeries, MarkerShape } from "@/components/charts/chart-types";
import {
  type BackingKind,
  backingLabel,
  comparePageSizes,
  pageSizeColor,
  pageSizeShort,
} from "@/lib/page-size";
import { formatBytes } from "@/lib/units";

/** What the layouts of a curve are called for a reader. A map: an agent may say `constructor`, which every object has. */
const LAYOUTS = new Map([
  ["line_per_page", "One line per page"],
  ["random_64b", "Random"],
  ["packed", "Packed"],
]);

export function layoutLabel(layout: string): string {
  return LAYOUTS.get(layout) ?? layout.replaceAll("_", " ");
}

/** Base page sizes of Linux: documents without a kind name a curve by its size alone. */
const BASE_LABELS = new Set(["4K", "16K", "64K"]);

/** The kind of a curve's backing; older documents name it only by its label. */
export function curveBacking(curve: Pick<RunCurve, "backing" | "backing_kind">): BackingKind {
  if (curve.backing_kind === "base" || curve.backing_kind === "thp" || curve.backing_kind === "hugetlb") {
    return curve.backing_kind;
  }
  if (curve.backing.toUpperCase().startsWith("THP")) return "thp";
  return BASE_LABELS.has(curve.backing.toUpperCase()) ? "base" : "hugetlb";
}

export function markerOf(kind: BackingKind, pageBytes: number): MarkerShape {
  if (kind === "base") return "circle";
  if (kind === "thp") return "square";
  return pageBytes >= 2 ** 30 ? "diamond" : "triangle";
}

type Backed = Pick<RunCurve, "backing" | "backing_kind" | "page_bytes">;

/** The one order of page sizes, for whatever names its backing. */
export function byBacking(a: Backed, b: Backed): number {
  return comparePageSizes(
    { kind: curveBacking(a), pageBytes: a.page_bytes },
    { kind: curveBacking(b), pageBytes: b.page_bytes },
  );
}

/** Curves that have points: a curve that was skipped has a reason instead. */
export function measuredCurves(curves: readonly RunCurve[]): RunCurve[] {
  return curves.filter((curve) => curve.points.some((point) => point.ns_p50 !== null)).sort(byBacking);
}

/** Curves that were asked for and not measured, with the reason to show. */
export function missingCurves(curves: readonly RunCurve[]): RunCurve[] {
  return curves.filter((curve) => !curve.points.some((point) => point.ns_p50 !== null)).sort(byBacking);
}

/** The short name of a curve's backing: "4K", "THP", "2M". */
export function curveShort(curve: Backed): string {
  if (curveBacking(curve) === "thp") return "THP";
  return curve.page_bytes ? pageSizeShort(curve.page_bytes) : curve.backing;
}

/** One chart series per curve; `prefix` tells runs apart in a comparison. */
export function curveSeries(curve: RunCurve, key: string, prefix = ""): ChartSeries {
  const kind = curveBacking(curve);
  const pageBytes = curve.page_bytes ?? 0;
  const short = curveShort(curve);
  return {
    key,
    label:
      prefix +
      (pageBytes ? backingLabel(kind, pageBytes) : curve.backing) +
      (curve.status === "noisy" ? " (noisy)" : ""),
    short: prefix ? `${prefix.trim()} ${short}` : short,
    color: pageSizeColor(pageBytes, kind),
    marker: markerOf(kind, pageBytes),
  };
}

/** Merges curves into rows by x. The interval is the 10th to the 90th percentile. */
export function curveRows(curves: readonly { key: string; curve: RunCurve }[]): ChartRow[] {
  const rows = new Map<number, ChartRow>();
  for (const { key, curve } of curves) {
    for (const point of curve.points) {
      const row = rows.get(point.x) ?? { x: point.x, values: {}, ranges: {} };
      row.values[key] = point.ns_p50;
      if (row.ranges && point.ns_p10 !== null && point.ns_p90 !== null) {
        row.ranges[key] = [point.ns_p10, point.ns_p90];
      }
      rows.set(point.x, row);
    }
  }
  return [...rows.values()].sort((a, b) => a.x - b.x);
}

const SOURCES: readonly string[] = ["measured", "cpuid", "catalogue", "assumed"];
const rank = (order: readonly string[], word: string | null) =>
  order.indexOf(word ?? "") + 1 || order.length + 1;

/** What was measured here wins; else the more confident source (a hypervisor may falsify CPUID); an unknown never does. */
function levelRank(level: TlbLevel): number {
  if (level.entries === null) return 1000;
  if (level.source === "measured") return 0;
  return 100 + 10 * rank(["high", "medium", "low"], level.confidence) + rank(SOURCES, level.source);
}

/** The best-known value of each level, kind and page size. */
export function bestLevels(levels: readonly TlbLevel[]): TlbLevel[] {
  const best = new Map<string, TlbLevel>();
  for (const level of levels) {
    const key = `${level.level}:${level.kind}:${level.page_bytes}`;
    const known = best.get(key);
    if (!known || levelRank(level) < levelRank(known)) best.set(key, level);
  }
  return [...best.values()];
}

/** Levels that translate data; instruction levels do not bound a buffer pool. */
export function isDataLevel(level: TlbLevel): boolean {
  return level.kind !== "instr" && level.kind !== "instruction" && level.kind !== "store";
}

/** What the data TLB levels reach with base pages, as lines on a footprint axis. */
export function reachReferences(levels: readonly TlbLevel[], basePageBytes: number): ChartReference[] {
  return bestLevels(levels)
    .filter((level) => isDataLevel(level) && level.page_bytes === basePageBytes && level.entries !== null)
    .sort((a, b) => a.level - b.level)
    .map((level) => {
      const reach = (level.entries ?? 0) * level.page_bytes;
      const name = level.level === 1 ? "L1 DTLB" : `L${level.level} TLB`;
      return { x: reach, label: `${name} reach at ${pageSizeShort(basePageBytes)}: ${formatBytes(reach)}` };
    });
}
