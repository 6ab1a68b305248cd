import type { ChartAxis, ChartReference, ChartRow, ChartSeries } from "./chart-types";

/** What decides where an x lies. */
type AxisScale = Pick<ChartAxis, "scale" | "knee">;

/** Where x lies on the axis: a logarithmic axis is drawn as a linear one over the logarithm. */
export function axisPosition(x: number, { scale, knee = 1 }: AxisScale): number {
  if (scale === "symlog") return Math.log2(1 + x / knee);
  return scale === "log2" ? Math.log2(x) : x;
}

/** The x at a position: the inverse of `axisPosition`. */
export function axisValue(position: number, { scale, knee = 1 }: AxisScale): number {
  if (scale === "symlog") return Math.round(knee * (2 ** position - 1));
  return scale === "log2" ? 2 ** position : position;
}

/** The first and the last x that any series has a value at. */
export function xDomain(rows: readonly ChartRow[], axis: AxisScale): [number, number] {
  const positions = rows.map((row) => axisPosition(row.x, axis)).filter(Number.isFinite);
  if (positions.length === 0) return [0, 1];
  const low = Math.min(...positions);
  const high = Math.max(...positions);
  return low === high ? [low - 1, high + 1] : [low, high];
}

/**
 * What is drawn of one series at each row. A row that the series was not measured at lies on the line between its
 * neighbours; an unknown value (null) breaks the line, since nobody knows where it would be.
 */
export function drawnValues(
  rows: readonly ChartRow[],
  of: (row: ChartRow) => number | null | undefined,
  axis: AxisScale,
): Map<ChartRow, number | null> {
  const drawn = new Map<ChartRow, number | null>();
  let before: { x: number; value: number } | null = null;
  let between: ChartRow[] = [];
  for (const row of rows) {
    const value = of(row);
    if (value === undefined) {
      between.push(row);
      continue;
    }
    const x = axisPosition(row.x, axis);
    for (const skipped of between) {
      if (!before || value === null) continue;
      const share = (axisPosition(skipped.x, axis) - before.x) / (x - before.x);
      drawn.set(skipped, before.value + share * (value - before.value));
    }
    between = [];
    drawn.set(row, value);
    before = value === null ? null : { x, value };
  }
  return drawn;
}

/** Labels at whole powers of two, thinned so that neighbours keep `minGap` pixels. */
export function log2Ticks(domain: readonly [number, number], width: number, minGap = 64): number[] {
  const first = Math.ceil(domain[0]);
  const last = Math.floor(domain[1]);
  const count = Math.max(1, Math.floor(width / minGap));
  const step = Math.max(1, Math.ceil((last - first + 1) / count));
  const ticks: number[] = [];
  for (let power = first; power <= last; power += step) ticks.push(power);
  return ticks;
}

/** Labels at whole steps that are a power of two, as sizes in bytes are read. */
export function linearTicks(domain: readonly [number, number], width: number, minGap = 72): number[] {
  const count = Math.max(1, Math.floor(width / minGap));
  const step = 2 ** Math.ceil(Math.log2((domain[1] - domain[0]) / count));
  const ticks: number[] = [];
  for (let at = Math.ceil(domain[0] / step) * step; at <= domain[1]; at += step) ticks.push(at);
  return ticks;
}

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** Steps of a time axis that a reader knows: minutes, hours, days, weeks. Longer ones are whole weeks, too. */
const TIME_STEPS_MS: readonly number[] = [
  ...[1, 2, 5, 10, 15, 30].map((minutes) => (minutes * HOUR_MS) / 60),
  ...[1, 2, 3, 6, 12].map((hours) => hours * HOUR_MS),
  ...[1, 2, 7, 14, 28, 56, 112].map((days) => days * DAY_MS),
];

/** Labels at whole minutes, hours, midnights or Mondays (UTC), thinned so that neighbours keep `minGap` pixels. */
export function timeTicks(domain: readonly [number, number], width: number, minGap = 110): number[] {
  const count = Math.max(1, Math.floor(width / minGap));
  const rough = (domain[1] - domain[0]) / count;
  const step = TIME_STEPS_MS.find((candidate) => candidate >= rough) ?? rough;
  // 1970 began on a Thursday.
  const origin = step >= 7 * DAY_MS ? 4 * DAY_MS : 0;
  const ticks: number[] = [];
  for (let at = Math.ceil((domain[0] - origin) / step) * step + origin; at <= domain[1]; at += step)
    ticks.push(at);
  return ticks;
}

/**
 * Ticks of a value axis, zero always among them. The last one is the axis' upper end; below zero there are ticks only
 * as far as values go, so that an interval that just crosses zero takes no room.
 */
export function valueTicks(max: number, wanted = 5, min = 0): number[] {
  if (!(max > 0 || min < 0)) return [0, 1];
  const rough = (Math.max(max, 0) - min) / wanted;
  const magnitude = 10 ** Math.floor(Math.log10(rough));
  const step =
    [1, 2, 2.5, 5, 10].map((factor) => factor * magnitude).find((candidate) => candidate >= rough) ?? rough;
  const ticks: number[] = [];
  const first = -Math.floor(-min / step);
  for (let index = first; index <= 0 || (ticks.at(-1) ?? 0) < max; index += 1) {
    ticks.push(Number((index * step).toPrecision(12)) || 0);
  }
  return ticks;
}

/** The largest value of the rows, intervals included. */
export function largestValue(rows: readonly ChartRow[], keys: readonly string[]): number {
  let largest = 0;
  for (const row of rows) {
    for (const key of keys) {
      largest = Math.max(largest, row.values[key] ?? 0, row.ranges?.[key]?.[1] ?? 0);
    }
  }
  return largest;
}

/** The smallest value of the rows, intervals included; zero when none lies below it. */
export function smallestValue(rows: readonly ChartRow[], keys: readonly string[]): number {
  let smallest = 0;
  for (const row of rows) {
    for (const key of keys) {
      smallest = Math.min(smallest, row.values[key] ?? 0, row.ranges?.[key]?.[0] ?? 0);
    }
  }
  return smallest;
}

interface EndLabel {
  key: string;
  /** The x of the line's last point: lines that end at different x stand apart by themselves. */
  x: number;
  /** Pixels from the top of the plot. */
  y: number;
}

/** Places for labels beside the last points; those at one x are pushed apart so that none covers another. */
export function endLabels(
  rows: readonly ChartRow[],
  series: readonly ChartSeries[],
  [yMin, yMax]: readonly [number, number],
  plotHeight: number,
  gap = 15,
): EndLabel[] {
  const byX = new Map<number, EndLabel[]>();
  for (const { key } of series) {
    const last = rows.findLast((row) => row.values[key] !== null && row.values[key] !== undefined);
    const value = last?.values[key];
    if (!last || value === null || value === undefined) continue;
    const y = (plotHeight * (yMax - value)) / (yMax - yMin);
    byX.set(last.x, [...(byX.get(last.x) ?? []), { key, x: last.x, y }]);
  }
  return [...byX.values()].flatMap((labels) => spread(labels, plotHeight, gap));
}

function spread(labels: EndLabel[], plotHeight: number, gap: number): EndLabel[] {
  labels.sort((a, b) => a.y - b.y);
  for (let index = 1; index < labels.length; index += 1) {
    const previous = labels[index - 1] as EndLabel;
    const label = labels[index] as EndLabel;
    label.y = Math.max(label.y, previous.y + gap);
  }
  // What was pushed below the plot moves the ones above it up again.
  for (let index = labels.length - 1, floor = plotHeight; index >= 0; index -= 1, floor -= gap) {
    const label = labels[index] as EndLabel;
    label.y = Math.min(label.y, floor);
  }
  return labels;
}

export interface PlacedReference extends ChartReference {
  /** The row of the label above the plot, 0 nearest to it. */
  lane: number;
  /** Which side of its line the label stands on. */
  side: "left" | "right";
  px: number;
}

/** Gives each reference label a lane in which it touches no other label. */
export function placeReferences(
  references: readonly ChartReference[],
  toPixel: (x: number) => number,
  plotWidth: number,
  charWidth = 6.4,
): PlacedReference[] {
  const lanes: { from: number; to: number }[][] = [];
  return [...references]
    .sort((a, b) => a.x - b.x)
    .map((reference) => {
      const px = toPixel(reference.x);
      const width = reference.label.length * charWidth + 8;
      const side = px + width > plotWidth ? "left" : "right";
      const from = side === "right" ? px : px - width;
      const to = from + width;
      let lane = 0;
      while (lanes[lane]?.some((taken) => from < taken.to && to > taken.from)) lane += 1;
      lanes[lane] = [...(lanes[lane] ?? []), { from, to }];
      return { ...reference, lane, side, px };
    });
}
