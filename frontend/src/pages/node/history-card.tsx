import { useQuery } from "@tanstack/react-query";
import { nodeSamplesQuery } from "@/api/nodes";
import type { SampleRow } from "@/api/types";
import type { ChartAxis, ChartRow, ChartSeries, ValueAxis } from "@/components/charts/chart-types";
import { LineChart } from "@/components/charts/line-chart";
import { QueryView } from "@/components/ui/query-view";
import { QuestionCard } from "@/components/ui/question-card";
import { CardSkeleton } from "@/components/ui/skeletons";
import { StateText } from "@/components/ui/states";
import { formatAbsolute, formatBytes, GIB, MIB } from "@/lib/units";
import { token } from "@/theme/tokens";

const MEMORY: readonly ChartSeries[] = [
  {
    key: "available",
    label: "MemAvailable",
    short: "available",
    color: token("ledger-tenants"),
    marker: "circle",
  },
  { key: "pools", label: "In huge page pools", short: "pools", color: token("page-2m"), marker: "triangle" },
];
// Page tables are a hundredth of the rest: on the same axis they would be a line along zero.
const PAGE_TABLES: readonly ChartSeries[] = [
  {
    key: "page_tables",
    label: "PageTables",
    short: "page tables",
    color: token("ledger-page-tables"),
    marker: "square",
  },
];

/** Samples as rows of GiB over time, oldest first. */
export function historyRows(samples: readonly SampleRow[]): ChartRow[] {
  const gib = (bytes: number | null) => (bytes === null ? null : bytes / GIB);
  const rows = samples
    .map((sample) => ({
      x: new Date(sample.taken_at).getTime(),
      values: {
        available: gib(sample.memory.mem_available_bytes),
        page_tables: sample.memory.page_tables_bytes === null ? null : sample.memory.page_tables_bytes / MIB,
        pools: gib(sample.pools.reduce((sum, pool) => sum + pool.nr_hugepages * pool.page_bytes, 0)),
      },
    }))
    .sort((a, b) => a.x - b.x);
  return withGaps(rows);
}

/** A silence much longer than the usual pace is a gap in the line: nobody knows what memory did meanwhile. */
export function withGaps(rows: readonly ChartRow[]): ChartRow[] {
  const steps = rows.slice(1).map((row, index) => row.x - (rows[index]?.x ?? row.x));
  const usual = [...steps].sort((a, b) => a - b)[steps.length >> 1] ?? 0;
  return rows.flatMap((row, index) => {
    const before = rows[index - 1];
    if (!before || row.x - before.x <= 4 * usual) return [row];
    return [
      {
        x: (before.x + row.x) / 2,
        values: Object.fromEntries(Object.keys(row.values).map((key) => [key, null])),
      },
      row,
    ];
  });
}

const VALUE_AXIS: ValueAxis = {
  label: "GiB",
  format: (gib) => formatBytes(gib === null ? null : gib * GIB),
};

const MIB_AXIS: ValueAxis = {
  label: "MiB",
  format: (mib) => formatBytes(mib === null ? null : mib * MIB),
};

function timeAxis(rows: readonly ChartRow[]): ChartAxis {
  const days = ((rows.at(-1)?.x ?? 0) - (rows[0]?.x ?? 0)) / 86_400_000;
  return {
    label: "Time (UTC)",
    scale: "time",
    format: (x) => {
      const text = formatAbsolute(new Date(x).toISOString());
      return days > 2 ? text.slice(5, 16) : text.slice(11, 19);
    },
  };
}

/** How memory use has changed from sample to sample. */
export function HistoryCard({ nodeId }: { nodeId: string }) {
  const query = useQuery(nodeSamplesQuery(nodeId));
  return (
    <QueryView query={query} skeleton={<CardSkeleton />}>
      {({ items }) => {
        const rows = historyRows(items);
        return (
          <QuestionCard
            title="How has memory use changed?"
            description={`${items.length} ${items.length === 1 ? "sample" : "samples"} from the agent.`}
          >
            {rows.length < 2 ? (
              <StateText>A line needs at least two samples. The next report adds one.</StateText>
            ) : (
              <>
                <LineChart
                  title="Memory over time"
                  rows={rows}
                  series={MEMORY}
                  xAxis={timeAxis(rows)}
                  valueAxis={VALUE_AXIS}
                  height={220}
                />
                <LineChart
                  title="Page tables over time"
                  rows={rows}
                  series={PAGE_TABLES}
                  xAxis={timeAxis(rows)}
                  valueAxis={MIB_AXIS}
                  height={140}
                />
              </>
            )}
          </QuestionCard>
        );
      }}
    </QueryView>
  );
}
