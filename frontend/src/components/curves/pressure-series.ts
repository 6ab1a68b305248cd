import type { PressurePoint } from "@/api/types";
import type { ChartAxis, ChartRow, ChartSeries, MarkerShape } from "@/components/charts/chart-types";
import { type BackingKind, backingLabel, pageSizeColor } from "@/lib/page-size";
import { formatBytes, formatCount, formatNsInterval, formatNsWithin } from "@/lib/units";
import { token } from "@/theme/tokens";
import { byBacking, curveBacking, curveShort } from "./curve-series";

/** What lies between two accesses: lines that are read, or time that passes. */
export type Between = "lines" | "wait";

/** A page size that was measured under pressure. */
export interface PressureBacking {
  backing: string;
  kind: BackingKind;
  pageBytes: number;
  short: string;
  label: string;
}

/** The number of lines at which page sizes are compared in words: what a database reads between two cold places. */
const READING_LINES = 256;

export const BETWEEN_AXES: Record<Between, ChartAxis> = {
  lines: {
    label: "Other cache lines read between two accesses",
    scale: "symlog",
    knee: 8,
    format: formatCount,
    describe: (lines) => (lines === 0 ? "Nothing read in between" : `${formatCount(lines)} lines in between`),
  },
  wait: {
    label: "Time that passes between two accesses",
    scale: "symlog",
    knee: 1000,
    format: formatMicroseconds,
    describe: (ns) => (ns === 0 ? "No time in between" : `${formatMicroseconds(ns)} in between`),
  },
};

/** 8000 -> "8 µs". */
export function formatMicroseconds(ns: number): string {
  return `${Number((ns / 1000).toPrecision(3))}\u00a0µs`;
}

/** Savings are read to the nanosecond: their intervals span several. */
export function formatSaving(ns: number | null): string {
  return formatNsWithin(ns, { low: 0, high: 10 });
}

/** The page sizes that were measured, in the order of all charts. */
export function pressureBackings(points: readonly PressurePoint[]): PressureBacking[] {
  const first = new Map<string, PressurePoint>();
  for (const point of points) {
    if (point.delta_ns !== null && !first.has(point.backing)) first.set(point.backing, point);
  }
  return [...first.values()].sort(byBacking).map((point) => {
    const kind = curveBacking(point);
    return {
      backing: point.backing,
      kind,
      pageBytes: point.page_bytes,
      short: curveShort(point),
      label: backingLabel(kind, point.page_bytes),
    };
  });
}

/** The lines that were read besides in the points that also waited; null when none did. */
export function linesBesideWait(points: readonly PressurePoint[]): number | null {
  return points.find((point) => point.wait_ns > 0)?.lines_between ?? null;
}

/** The points of a chart: all that did not wait; or, of the footprints that waited, those with the same lines. */
export function pointsBetween(points: readonly PressurePoint[], between: Between): PressurePoint[] {
  if (between === "lines") return points.filter((point) => point.wait_ns === 0);
  const lines = linesBesideWait(points);
  const waited = new Set(points.filter((point) => point.wait_ns > 0).map((point) => point.footprint_bytes));
  return points.filter((point) => point.lines_between === lines && waited.has(point.footprint_bytes));
}

function betweenX(point: PressurePoint, between: Between): number {
  return between === "lines" ? point.lines_between : point.wait_ns;
}

/** Savings by what lies in between. `keyOf` says which line of the chart a point belongs to. */
export function pressureRows(
  points: readonly PressurePoint[],
  between: Between,
  keyOf: (point: PressurePoint) => string = ({ footprint_bytes }) => String(footprint_bytes),
): ChartRow[] {
  const rows = new Map<number, ChartRow>();
  for (const point of pointsBetween(points, between)) {
    const x = betweenX(point, between);
    const row = rows.get(x) ?? { x, values: {}, ranges: {} };
    const key = keyOf(point);
    row.values[key] = point.delta_ns === null ? null : -point.delta_ns;
    if (row.ranges && point.ci95_low_ns !== null && point.ci95_high_ns !== null) {
      row.ranges[key] = [-point.ci95_high_ns, -point.ci95_low_ns];
    }
    rows.set(x, row);
  }
  return [...rows.values()].sort((a, b) => a.x - b.x);
}

export function footprintsOf(points: readonly PressurePoint[]): number[] {
  return [...new Set(points.map((point) => point.footprint_bytes))].sort((a, b) => a - b);
}

const MARKERS: readonly MarkerShape[] = ["circle", "square", "triangle", "diamond"];

/** One line a footprint: all in the page size's hue, the larger the nearer to the colour of text. */
export function footprintSeries(
  points: readonly PressurePoint[],
  between: Between,
  { pageBytes, kind }: Pick<PressureBacking, "pageBytes" | "kind">,
): ChartSeries[] {
  const footprints = footprintsOf(pointsBetween(points, between));
  const hue = pageSizeColor(pageBytes, kind);
  return footprints.map((footprint, index) => {
    const share = Math.round(100 - (65 * index) / Math.max(1, footprints.length - 1));
    return {
      key: String(footprint),
      label: `Over ${formatBytes(footprint)}`,
      short: formatBytes(footprint),
      color: index === 0 ? hue : `color-mix(in oklch, ${hue} ${share}%, ${token("text")})`,
      marker: MARKERS[index % MARKERS.length] ?? "circle",
    };
  });
}

/** Whether a point shows a difference: its 95 % interval leaves out zero. */
export function isClear({ ci95_low_ns: low, ci95_high_ns: high }: PressurePoint): boolean {
  return low !== null && high !== null && (low > 0 || high < 0);
}

/** Half of a point's 95 % interval; null when it has none. */
export function halfWidth({ ci95_low_ns: low, ci95_high_ns: high }: PressurePoint): number | null {
  return low === null || high === null ? null : (high - low) / 2;
}

interface Spread {
  low: number;
  high: number;
  isClear: boolean;
  text: string;
}

/** The savings over all footprints at one number of lines between; null where nothing was measured. */
function spreadAt(points: readonly PressurePoint[], lines: number): Spread | null {
  const found = points.filter(
    (point) => point.wait_ns === 0 && point.lines_between === lines && point.delta_ns !== null,
  );
  if (found.length === 0) return null;
  const savings = found.map((point) => -(point.delta_ns ?? 0));
  const widths = found.map((point) => 2 * (halfWidth(point) ?? 0)).sort((a, b) => a - b);
  const [low, high] = [Math.min(...savings), Math.max(...savings)];
  const width = Math.max(10, widths[widths.length >> 1] ?? 0);
  const text = (from: number, to: number) =>
    formatNsInterval({ low: from, high: to }, { low: 0, high: width });
  return { low, high, isClear: found.some(isClear), text: high < 0 ? text(-high, -low) : text(low, high) };
}

/** What the points of one page size say, in one sentence; null where there is no point to say it from. */
export function pressureReading(
  points: readonly PressurePoint[],
  { short, kind }: Pick<PressureBacking, "short" | "kind">,
): string | null {
  const counts = points
    .filter((point) => point.wait_ns === 0 && point.delta_ns !== null)
    .map((point) => point.lines_between);
  const lines = counts.includes(READING_LINES) ? READING_LINES : Math.max(...counts);
  const under = spreadAt(points, lines);
  if (under === null) return null;
  const chase = lines === 0 ? null : spreadAt(points, 0);
  const isThp = kind === "thp";
  const name = isThp ? "THP" : `${short} pages`;
  const when =
    lines === 0
      ? "in a plain pointer chase"
      : `when a program reads ${formatCount(lines)} other ${lines === 1 ? "line" : "lines"} between two accesses`;
  const verb = under.high < 0 ? "cost" : "save";
  const said = under.isClear
    ? `${name} ${verb}${isThp ? "s" : ""} ${under.text} per access ${when}`
    : `${name} ${isThp ? "makes" : "make"} no clear difference ${when}`;
  if (chase === null) return `${said}.`;
  if (!chase.isClear) return `${said}; a plain pointer chase shows no clear difference.`;
  const only = under.isClear && chase.low >= 0 && chase.high < under.low ? "only " : "";
  return `${said}; a plain pointer chase shows ${only}${chase.high < 0 ? "a cost of " : ""}${chase.text}.`;
}
