import type { CurvePoint, PairedDelta, RunCurve } from "@/api/types";
import { curveBacking, curveShort, measuredCurves, missingCurves } from "@/components/curves/curve-series";
import { backingLabel } from "@/lib/page-size";
import { formatBytes, formatNsInterval, formatNsWithin, formatPercentChange } from "@/lib/units";

interface LatencySaving {
  backing: string;
  /** The backing's short name: "THP", "2M". */
  short: string;
  footprintBytes: number;
  baseNs: number;
  /** Negative when the huge page is faster. */
  deltaNs: number;
  /** How exact the difference is: its 95 % interval, or as wide as both scatters. */
  interval: { low: number; high: number };
  isClear: boolean;
  /** Measured in pairs: then `baseNs` is of other moments, and no share of it is to be told. */
  isPaired: boolean;
}

/** The latency curves of one layout. */
export function curvesOfLayout(curves: readonly RunCurve[], layout: string): RunCurve[] {
  return curves.filter(
    (curve) => curve.section === "latency" && curve.x_name === "footprint_bytes" && curve.layout === layout,
  );
}

/** The layouts that a run measured over footprints; the one that reaches furthest first. */
export function layoutsOf(curves: readonly RunCurve[]): string[] {
  const furthest = new Map<string, number>();
  for (const curve of curves) {
    if (curve.section !== "latency" || curve.x_name !== "footprint_bytes" || curve.layout === null) continue;
    const last = curve.points.at(-1)?.x ?? 0;
    furthest.set(curve.layout, Math.max(last, furthest.get(curve.layout) ?? 0));
  }
  const order = ["packed", "line_per_page", "random_64b"];
  return [...furthest.entries()]
    .sort(([a, xa], [b, xb]) => xb - xa || order.indexOf(b) - order.indexOf(a))
    .map(([layout]) => layout);
}

/** The paired measurement at a point, if the run has one: the most exact difference there is. */
function pairedAt(deltas: readonly PairedDelta[], curve: RunCurve, x: number): PairedDelta | undefined {
  return deltas.find(
    (delta) =>
      delta.backing === curve.backing &&
      delta.layout === curve.layout &&
      delta.x === x &&
      delta.delta_ns !== null,
  );
}

/**
 * What each huge backing saves against base pages, at the largest footprint both were measured at. A difference is
 * clear when the 95 % interval of the paired measurement excludes zero; without one, when the two curves' 10th to
 * 90th percentiles are apart.
 */
export function latencySavings(
  curves: readonly RunCurve[],
  deltas: readonly PairedDelta[] = [],
): LatencySaving[] {
  const measured = measuredCurves(curves);
  const base = measured.find((curve) => curveBacking(curve) === "base");
  if (!base) return [];
  const savings: LatencySaving[] = [];
  for (const curve of measured) {
    if (curve === base) continue;
    const shared = curve.points.findLast(
      (point) =>
        point.ns_p50 !== null && base.points.some((other) => other.x === point.x && other.ns_p50 !== null),
    );
    const basePoint = shared && base.points.find((point) => point.x === shared.x);
    if (shared?.ns_p50 == null || basePoint?.ns_p50 == null) continue;
    const paired = pairedAt(deltas, curve, shared.x);
    const deltaNs = paired?.delta_ns ?? shared.ns_p50 - basePoint.ns_p50;
    const below = (high: number | null, low: number | null) => low !== null && high !== null && high < low;
    savings.push({
      backing: backingLabel(curveBacking(curve), curve.page_bytes ?? 0),
      short: curveShort(curve),
      footprintBytes: shared.x,
      baseNs: basePoint.ns_p50,
      deltaNs,
      interval: {
        low: paired?.ci95_low_ns ?? deltaNs,
        high: paired?.ci95_high_ns ?? deltaNs + scatter(shared) + scatter(basePoint),
      },
      isClear: paired
        ? below(paired.ci95_high_ns, 0) || below(0, paired.ci95_low_ns)
        : below(shared.ns_p90, basePoint.ns_p10) || below(basePoint.ns_p90, shared.ns_p10),
      isPaired: paired !== undefined,
    });
  }
  return savings;
}

/** From the 10th to the 90th percentile; zero where it is not known. */
function scatter({ ns_p10: low, ns_p90: high }: CurvePoint): number {
  return low === null || high === null ? 0 : high - low;
}

/** "THP", "THP and 2M", "THP, 2M and 1G". */
function joined(names: readonly string[]): string {
  return names.length < 2 ? names.join() : `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`;
}

/** "; 2M and 1G were not measured": what a reader would look for and not find among the curves. */
function notMeasured(curves: readonly RunCurve[]): string {
  const names = [...new Set(missingCurves(curves).map(curveShort))];
  if (names.length === 0) return "";
  return `; ${joined(names)} ${names.length === 1 ? "was" : "were"} not measured`;
}

/** "THP and 2M are not clearly faster than base pages over 16 MiB": each backing with the footprint it was compared at. */
function noneIsFaster(savings: readonly LatencySaving[]): string {
  const byFootprint = new Map<number, string[]>();
  for (const { short, footprintBytes } of savings) {
    byFootprint.set(footprintBytes, [...(byFootprint.get(footprintBytes) ?? []), short]);
  }
  return [...byFootprint]
    .sort(([a], [b]) => b - a)
    .map(([footprint, names], index) => {
      const over = `over ${formatBytes(footprint)}`;
      if (index > 0) return `${joined(names)} not ${over}`;
      return `${joined(names)} ${names.length === 1 ? "is" : "are"} not clearly faster than base pages ${over}`;
    })
    .join(", ");
}

/** The card's finding: which backing saves most, or that none does, and which were not measured. */
export function latencyFinding(curves: readonly RunCurve[], deltas: readonly PairedDelta[] = []): string {
  const savings = latencySavings(curves, deltas);
  if (savings.length === 0) return "What does a page size buy on this node?";
  const faster = savings.filter(({ deltaNs, isClear }) => isClear && deltaNs < 0);
  if (faster.length === 0) return `${noneIsFaster(savings)}${notMeasured(curves)}.`;
  const best = faster.reduce((a, b) => (b.deltaNs < a.deltaNs ? b : a));
  const at = `over ${formatBytes(best.footprintBytes)}`;
  const { low, high } = best.interval;
  const change = best.isPaired
    ? `95 % interval ${formatNsInterval({ low: -high, high: -low })}`
    : formatPercentChange(best.deltaNs / best.baseNs);
  return `${best.backing} ${best.backing.startsWith("THP") ? "makes" : "make"} a read ${at} ${formatNsWithin(-best.deltaNs, best.interval)} faster than base pages (${change})${notMeasured(curves)}.`;
}
