import type { RunCurve } from "@/api/types";
import { curveBacking, measuredCurves } from "@/components/curves/curve-series";
import { backingLabel } from "@/lib/page-size";
import { formatBytes, formatNs, formatPercentChange } from "@/lib/units";

export interface LatencySaving {
  backing: string;
  footprintBytes: number;
  baseNs: number;
  hugeNs: number;
  /** Negative when the huge page is faster. */
  deltaNs: number;
  /** Whether the two curves' intervals (10th to 90th percentile) are apart. */
  isClear: boolean;
}

/** The latency curves of one layout. */
export function curvesOfLayout(curves: readonly RunCurve[], layout: string): RunCurve[] {
  return curves.filter(
    (curve) => curve.section === "latency" && curve.x_name === "footprint_bytes" && curve.layout === layout,
  );
}

/** The layouts that a run measured, the cleanest first. */
export function layoutsOf(curves: readonly RunCurve[]): string[] {
  const found = new Set(
    curves
      .filter((c) => c.section === "latency" && c.x_name === "footprint_bytes")
      .map((c) => c.layout ?? "other"),
  );
  const order = ["random_64b", "line_per_page"];
  return [...found].sort((a, b) => ((order.indexOf(a) + 9) % 9) - ((order.indexOf(b) + 9) % 9));
}

/** What each huge backing saves against base pages, at the largest footprint both were measured at. */
export function latencySavings(curves: readonly RunCurve[]): LatencySaving[] {
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
    const apart = (low: number | null, high: number | null) => low !== null && high !== null && high < low;
    savings.push({
      backing: backingLabel(curveBacking(curve), curve.page_bytes ?? 0),
      footprintBytes: shared.x,
      baseNs: basePoint.ns_p50,
      hugeNs: shared.ns_p50,
      deltaNs: shared.ns_p50 - basePoint.ns_p50,
      isClear: apart(basePoint.ns_p10, shared.ns_p90) || apart(shared.ns_p10, basePoint.ns_p90),
    });
  }
  return savings;
}

/** The card's finding: which backing saves most, or that none does. */
export function latencyFinding(curves: readonly RunCurve[]): string {
  const savings = latencySavings(curves);
  if (savings.length === 0) return "What does a page size buy on this node?";
  const best = savings.reduce((a, b) => (b.deltaNs < a.deltaNs ? b : a));
  const at = `over ${formatBytes(best.footprintBytes)}`;
  if (best.deltaNs >= 0 || !best.isClear) {
    return `No page size is clearly faster than base pages ${at}.`;
  }
  const change = formatPercentChange(best.deltaNs / best.baseNs);
  return `${best.backing} make a random read ${at} ${formatNs(-best.deltaNs)} faster than base pages (${change}).`;
}
