import type { RowMeasurement } from "@/api/types";
import type { ChartRow } from "@/components/charts/chart-types";
import { curveBacking } from "@/components/curves/curve-series";
import { formatCount, formatPercentChange } from "@/lib/units";

/** One way of reading rows, with its measurement on each backing. */
export interface RowsCase {
  key: string;
  name: string;
  rowBytes: number;
  workers: number | null;
  /** By backing; a backing that was not tried is absent. */
  cells: Map<string, RowMeasurement>;
}

export interface RowsPivot {
  backings: string[];
  /** The backing of base pages, whose size is the kernel's: 4K, 16K or 64K; null when it was not measured. */
  base: string | null;
  cases: RowsCase[];
}

const READS = new Map([
  ["header", "row header"],
  ["row", "whole row"],
  ["index_then_row", "index, then row"],
]);

function caseName(measurement: RowMeasurement): string {
  const parts = [
    measurement.row_bytes === null ? null : `${formatCount(measurement.row_bytes)} B`,
    measurement.keys,
    measurement.read && (READS.get(measurement.read) ?? measurement.read),
    measurement.mode,
  ];
  return parts.filter(Boolean).join(", ");
}

const ORDER = { base: 0, thp: 1, hugetlb: 2 } as const;

/** Measurements as a table: a line a way of reading, a column a backing, base pages first. */
export function rowsPivot(measurements: readonly RowMeasurement[]): RowsPivot {
  const cases = new Map<string, RowsCase>();
  const backings = new Map<string, number>();
  for (const measurement of measurements) {
    const name = caseName(measurement);
    const key = `${name}:${measurement.workers}`;
    const found = cases.get(key) ?? {
      key,
      name,
      rowBytes: measurement.row_bytes ?? 0,
      workers: measurement.workers,
      cells: new Map(),
    };
    found.cells.set(measurement.backing, measurement);
    cases.set(key, found);
    const kind = curveBacking({ backing: measurement.backing, backing_kind: null });
    backings.set(measurement.backing, ORDER[kind] * 2 ** 50 + (measurement.page_bytes ?? 0));
  }
  const isBase = (backing: string) => curveBacking({ backing, backing_kind: null }) === "base";
  return {
    base: [...backings.keys()].find(isBase) ?? null,
    backings: [...backings.entries()].sort(([, a], [, b]) => a - b).map(([backing]) => backing),
    cases: [...cases.values()].sort(
      (a, b) =>
        a.rowBytes - b.rowBytes || a.name.localeCompare(b.name) || (a.workers ?? 0) - (b.workers ?? 0),
    ),
  };
}

/** Backings that no case could be measured on, each with one measurement that says why. */
export function unmeasuredBackings(pivot: RowsPivot): RowMeasurement[] {
  return pivot.backings.flatMap((backing) => {
    const tried = pivot.cases.flatMap((found) => found.cells.get(backing) ?? []);
    if (tried.some((measurement) => measurement.rows_per_second !== null)) return [];
    return tried.slice(0, 1);
  });
}

/** The change of rows per second against base pages in the same case; null when either is unknown. */
export function changeToBase(found: RowsCase, backing: string, baseBacking: string | null): number | null {
  const base = baseBacking === null ? undefined : found.cells.get(baseBacking)?.rows_per_second;
  const own = found.cells.get(backing)?.rows_per_second;
  return base == null || own == null || base === 0 ? null : own / base - 1;
}

function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? (sorted[middle] ?? 0) : ((sorted[middle - 1] ?? 0) + (sorted[middle] ?? 0)) / 2;
}

/** The card's finding: the backing with the best median change. The median, because one disturbed case proves nothing. */
export function rowsFinding(pivot: RowsPivot): string {
  const changes = pivot.backings
    .filter((backing) => backing !== pivot.base)
    .map((backing) => ({
      backing,
      values: pivot.cases
        .map((found) => changeToBase(found, backing, pivot.base))
        .filter((change) => change !== null),
    }))
    .filter(({ values }) => values.length > 0)
    .map(({ backing, values }) => ({ backing, count: values.length, change: median(values) }))
    .sort((a, b) => b.change - a.change);
  const [best] = changes;
  if (!best) return "How many rows per second does each page size read?";
  const cases = `in the median of ${formatCount(best.count)} ${best.count === 1 ? "case" : "cases"}`;
  return `${best.backing === "THP" ? "THP reads" : `${best.backing} pages read`} ${formatPercentChange(best.change)} rows per second against ${pivot.base} pages, ${cases}.`;
}

/** The cases that differ in nothing but the number of workers, as one line of a chart each. */
interface RowsFamily {
  name: string;
  cases: RowsCase[];
}

export function rowsFamilies(pivot: RowsPivot): RowsFamily[] {
  const families = new Map<string, RowsCase[]>();
  for (const found of pivot.cases) families.set(found.name, [...(families.get(found.name) ?? []), found]);
  // The one measured at most counts of workers says most.
  return [...families]
    .map(([name, cases]) => ({ name, cases }))
    .sort((a, b) => b.cases.length - a.cases.length);
}

/** Rows of a chart over workers: one value per backing, unknown where a count was not measured. */
export function workerRows(
  family: RowsFamily,
  backings: readonly string[],
  of: (measurement: RowMeasurement) => number | null,
): ChartRow[] {
  return family.cases
    .filter((found) => found.workers !== null)
    .map((found) => ({
      x: found.workers ?? 0,
      values: Object.fromEntries(
        backings.map((backing) => {
          const measurement = found.cells.get(backing);
          return [backing, measurement ? of(measurement) : null];
        }),
      ),
    }))
    .sort((a, b) => a.x - b.x);
}
