import type { CurvePoint, RunComparison, RunCurve } from "@/api/types";
import { byBacking, curveShort } from "@/components/curves/curve-series";
import { formatBytes, formatPercentChange } from "@/lib/units";

/** One run's time at a point, with its 10th to 90th percentile. */
export interface Timed {
  ns: number;
  low: number;
  high: number;
}

/** How long a run takes relative to the first; below 1 it is faster. The interval is as wide as both scatters. */
interface Ratio {
  likely: number;
  low: number;
  high: number;
}

/** 1.16 -> "×1.16"; with a third decimal where two would hide that it is not one. */
export function formatRatio(ratio: number): string {
  return `×${ratio.toFixed(ratio !== 1 && Math.abs(ratio - 1) < 0.005 ? 3 : 2)}`;
}

/** One page size at the largest footprint that at least two runs measured. */
export interface RatioRow {
  backing: string;
  short: string;
  footprintBytes: number;
  /** By run; null where a run did not measure it. */
  times: (Timed | null)[];
  ratios: (Ratio | null)[];
  /** The run whose interval lies below every other's; null: a tie. */
  winner: number | null;
}

function timed(point: CurvePoint | undefined): Timed | null {
  if (point?.ns_p50 == null) return null;
  return { ns: point.ns_p50, low: point.ns_p10 ?? point.ns_p50, high: point.ns_p90 ?? point.ns_p50 };
}

/** The largest footprint at which at least two of the curves have a value; null when there is none. */
function largestShared(curves: readonly (RunCurve | null)[]): number | null {
  const counts = new Map<number, number>();
  for (const curve of curves)
    for (const point of curve?.points ?? [])
      if (point.ns_p50 !== null) counts.set(point.x, (counts.get(point.x) ?? 0) + 1);
  const shared = [...counts].filter(([, count]) => count >= 2).map(([x]) => x);
  return shared.length === 0 ? null : Math.max(...shared);
}

/** The index whose interval lies wholly below all others'; null when intervals touch or there is nothing to beat. */
export function winnerOf(times: readonly (Timed | null)[]): number | null {
  const known = times.flatMap((time, index) => (time === null ? [] : [{ time, index }]));
  if (known.length < 2) return null;
  const best = known.reduce((a, b) => (b.time.ns < a.time.ns ? b : a));
  return known.every(({ time, index }) => index === best.index || best.time.high < time.low)
    ? best.index
    : null;
}

/** The ratio table of one layout: a row per page size. */
export function ratioRows(comparison: RunComparison, layout: string): RatioRow[] {
  const rows: RatioRow[] = [];
  const compared = comparison.curves
    .filter((found) => found.section === "latency" && found.layout === layout)
    .flatMap((found) => {
      const known = found.curves.find((curve) => curve !== null);
      return known ? [{ found, known }] : [];
    })
    .sort((a, b) => byBacking(a.known, b.known));
  for (const { found, known } of compared) {
    const x = largestShared(found.curves);
    if (x === null) continue;
    const times = found.curves.map((curve) => timed(curve?.points.find((point) => point.x === x)));
    const first = times[0] ?? null;
    rows.push({
      backing: found.backing,
      short: curveShort(known),
      footprintBytes: x,
      times,
      ratios: times.map((time, index) =>
        time === null || first === null || index === 0
          ? null
          : { likely: time.ns / first.ns, low: time.low / first.high, high: time.high / first.low },
      ),
      winner: winnerOf(times),
    });
  }
  return rows;
}

/** Who wins, in one sentence. `letter` names a run. */
export function verdict(rows: readonly RatioRow[], letter: (index: number) => string): string {
  if (rows.length === 0) return "These runs have no latency in common, so nobody wins.";
  const wins = new Map<number, number>();
  for (const { winner } of rows) if (winner !== null) wins.set(winner, (wins.get(winner) ?? 0) + 1);
  const ties = rows.filter(({ winner }) => winner === null).length;
  const [best, second] = [...wins].sort(([, a], [, b]) => b - a);
  if (!best) {
    const sizes = rows.length === 1 ? "the one page size" : `all ${rows.length} page sizes`;
    return `Nobody wins: the intervals overlap for ${sizes}.`;
  }
  if (second && second[1] === best[1])
    return `${letter(best[0])} and ${letter(second[0])} win ${best[1]} of ${rows.length} page sizes each.`;
  const last = rows.findLast(({ winner }) => winner === best[0]);
  const others = (last?.times ?? []).flatMap((time, index) =>
    time === null || index === best[0] ? [] : [time.ns],
  );
  const own = last?.times[best[0]]?.ns;
  const gain =
    last && own && others.length > 0
      ? `: with ${last.short} over ${formatBytes(last.footprintBytes)} it takes ${formatPercentChange(own / Math.min(...others) - 1)} time against the next`
      : "";
  const tied = ties === 0 ? "" : `; ${ties} ${ties === 1 ? "is a tie" : "are ties"}`;
  return `${letter(best[0])} wins ${best[1]} of ${rows.length} page ${rows.length === 1 ? "size" : "sizes"}${gain}${tied}.`;
}
