import type { BacktestRow } from "@/api/types";

/** A result that the model predicted and that has a published figure to compare with. */
export type PredictedRow = BacktestRow & {
  predicted_percent: NonNullable<BacktestRow["predicted_percent"]>;
  published_percent: number;
};

/** The results of one source, by verdict. */
export interface BacktestGroup {
  source: string;
  inside: PredictedRow[];
  /** Outside of the range by a point at most: run-to-run scatter and rounding. */
  byTolerance: PredictedRow[];
  outside: PredictedRow[];
  /** Outside of the range, and above what the physics of translation can give. */
  unexplained: PredictedRow[];
  /** No inputs for the model, or no published figure. */
  unpredicted: BacktestRow[];
}

function isPredicted(row: BacktestRow): row is PredictedRow {
  return row.predicted_percent !== null && row.published_percent !== null;
}

/** Misses weigh most, then what could be predicted at all. */
function rank(group: BacktestGroup): number {
  if (group.unexplained.length > 0) return 0;
  if (group.outside.length > 0) return 1;
  return group.inside.length + group.byTolerance.length > 0 ? 2 : 3;
}

/** One group a source; sources with misses first, else in the server's order. */
export function backtestGroups(items: readonly BacktestRow[]): BacktestGroup[] {
  const groups = new Map<string, BacktestGroup>();
  for (const row of items) {
    const group = groups.get(row.source) ?? {
      source: row.source,
      inside: [],
      byTolerance: [],
      outside: [],
      unexplained: [],
      unpredicted: [],
    };
    groups.set(row.source, group);
    if (!isPredicted(row)) group.unpredicted.push(row);
    else if (row.status === "inside") group.inside.push(row);
    else if (row.status === "by_tolerance") group.byTolerance.push(row);
    else if (row.status === "unexplained") group.unexplained.push(row);
    else group.outside.push(row);
  }
  return [...groups.values()].sort((a, b) => rank(a) - rank(b));
}

/** The reasons of some rows, each once, in their order. */
export function reasonsOf(rows: readonly BacktestRow[]): string[] {
  return [...new Set(rows.flatMap(({ reason }) => reason ?? []))];
}

/** The groups of the backtest as parts of the page. Databases come first: they are what is planned for. */
export const PARTS = [
  {
    group: "database_huge_pages",
    what: "database results with huge pages",
    description: "Base pages against huge pages under a database. This is what a plan promises.",
  },
  {
    group: "memory_access",
    what: "results of programs that only read memory",
    description: "Pointer chases, rows and allocators: translation cost with nothing around it.",
  },
  {
    group: "buffer_pool_size",
    what: "points of buffer-size curves",
    description: "Throughput over the size of a buffer pool. No huge page occurs in these.",
  },
  {
    group: "no_inputs",
    what: "results without inputs for the model",
    description: "Published, but without the processor, the footprint or the access that a prediction needs.",
  },
] as const;

/** "3 of 5 database results ... lie inside": the finding of one part; wide ranges are said, as they say little. */
export function partTitle(items: readonly BacktestRow[], what: string): string {
  const predicted = items.filter(isPredicted);
  const inside = predicted.filter(({ status }) => status === "inside");
  if (predicted.length === 0) return `${items.length} ${what}: none could be predicted.`;
  const wide = inside.filter(({ is_wide }) => is_wide).length;
  const aside = wide > 0 ? `, ${wide} of them in a range over 50 points` : "";
  return `${inside.length} of ${predicted.length} ${what} lie inside the predicted range${aside}.`;
}
