import { useQuery } from "@tanstack/react-query";
import { nodeSamplesQuery } from "@/api/nodes";
import type { SampleRow } from "@/api/types";
import type { ChartAxis, ChartRow, ChartSeries, ValueAxis } from "@/components/charts/chart-types";
import { LineChart } from "@/components/charts/line-chart";
import { QueryView } from "@/components/ui/query-view";
import { QuestionCard } from "@/components/ui/question-card";
import { CardSkeleton } from "@/components/ui/skeletons";
import { StateText } from "@/components/ui/states";
import { formatAbsolute, formatBytes, GIB } from "@/lib/units";
import { token } from "@/theme/tokens";

const SERIES: readonly ChartSeries[] = [
  {
    key: "available",
    label: "MemAvailable",
    short: "available",
    color: token("ledger-tenants"),
    marker: "circle",
  },
  { key: "pools", label: "In huge page pools", short: "pools", color: token("page-2m"), marker: "triangle" },
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
  return samples
    .map((sample) => ({
      x: new Date(sample.taken_at).getTime(),
      values: {
        available: gib(sample.memory.mem_available_bytes),
        page_tables: gib(sample.memory.page_tables_bytes),
        pools: gib(sample.pools.reduce((sum, pool) => sum + pool.nr_hugepages * pool.page_bytes, 0)),
      },
    }))
    .sort((a, b) => a.x - b.x);
}

const VALUE_AXIS: ValueAxis = {
  label: "GiB",
  format: (gib) => formatBytes(gib === null ? null : gib * GIB),
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

/** How memory has moved from sample to sample. */
export function HistoryCard({ nodeId }: { nodeId: string }) {
  const query = useQuery(nodeSamplesQuery(nodeId));
  return (
    <QueryView query={query} skeleton={<CardSkeleton />}>
      {({ items }) => {
        const rows = historyRows(items);
        return (
          <QuestionCard
            title="How has memory moved?"
            description={`${items.length} ${items.length === 1 ? "sample" : "samples"} from the agent.`}
          >
            {rows.length < 2 ? (
              <StateText>A line needs at least two samples. The next report adds one.</StateText>
            ) : (
              <LineChart
                title="Memory over time"
                rows={rows}
                series={SERIES}
                xAxis={timeAxis(rows)}
                valueAxis={VALUE_AXIS}
                height={240}
              />
            )}
          </QuestionCard>
        );
      }}
    </QueryView>
  );
}
