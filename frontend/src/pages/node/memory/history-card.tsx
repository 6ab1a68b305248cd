import { SegmentedControl } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { csvPath, nodeHistoryQuery } from "@/api/nodes";
import type { NodeDetail, NodeHistory } from "@/api/types";
import type { ChartAxis, ChartRow, ChartSeries, ValueAxis } from "@/components/charts/chart-types";
import { LineChart } from "@/components/charts/line-chart";
import { CsvButton } from "@/components/ui/csv-button";
import { QueryView } from "@/components/ui/query-view";
import { QuestionCard } from "@/components/ui/question-card";
import { CardSkeleton } from "@/components/ui/skeletons";
import { StateText } from "@/components/ui/states";
import { pageSizeColor } from "@/lib/page-size";
import { formatAbsolute, formatBytes, formatCount, formatDuration, GIB, MIB } from "@/lib/units";
import { token } from "@/theme/tokens";

/**
 * Memory of a node over time. A history adds its pools of all sizes up: they have the hue of a page size where the node
 * has pools of one size, else none of them.
 */
export function memorySeries(pools: NodeDetail["pools"]): readonly ChartSeries[] {
  const [size, another] = new Set(
    pools.filter((pool) => pool.nr_hugepages > 0).map((pool) => pool.page_bytes),
  );
  const color = size === undefined || another !== undefined ? token("axis") : pageSizeColor(size, "hugetlb");
  return [
    {
      key: "available",
      label: "MemAvailable (lowest)",
      short: "available",
      // Available memory has no hue of its own: in the memory map it is the empty part.
      color: token("accent"),
      marker: "circle",
    },
    { key: "pools", label: "Huge page pools", short: "pools", color, marker: "triangle" },
    { key: "idle", label: "Idle in pools (most)", short: "idle", color, marker: "diamond" },
  ];
}
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

const KEYS = ["available", "pools", "idle", "page_tables"];
const UNKNOWN_ROW = Object.fromEntries(KEYS.map((key) => [key, null]));

/** A history as rows over time; a time without samples is a row of unknowns, which breaks every line. */
export function historyRows({ points, gaps, width_seconds: width }: NodeHistory): ChartRow[] {
  const in_ = (bytes: number | null, unit: number) => (bytes === null ? null : bytes / unit);
  const rows = points.map((point) => {
    const low = in_(point.mem_available_bytes_min, GIB);
    const mean = in_(point.mem_available_bytes_mean, GIB);
    return {
      x: new Date(point.start_at).getTime(),
      values: {
        available: low,
        pools: in_(point.hugetlb_bytes_max, GIB),
        idle: in_(point.pool_idle_bytes_max, GIB),
        page_tables: in_(point.page_tables_bytes_max, MIB),
      },
      // From the lowest to the mean: how far the lowest stands out.
      ranges: { available: low === null || mean === null || width === 0 ? null : ([low, mean] as const) },
    };
  });
  const silent = gaps.map(({ start_at: start, end_at: end }) => ({
    x: (new Date(start).getTime() + new Date(end).getTime()) / 2,
    values: UNKNOWN_ROW,
  }));
  return [...rows, ...silent].sort((a, b) => a.x - b.x);
}

const VALUE_AXIS: ValueAxis = {
  label: "GiB",
  format: (gib) => formatBytes(gib === null ? null : gib * GIB),
};

const MIB_AXIS: ValueAxis = {
  label: "MiB of page tables",
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
    describe: (x) => formatAbsolute(new Date(x).toISOString()),
  };
}

const SPANS = [
  { value: "1", label: "Day" },
  { value: "7", label: "Week" },
  { value: "30", label: "Month" },
  { value: "400", label: "Year" },
];

const SOURCES = {
  samples: "the samples themselves",
  hours: "their roll-ups by the hour",
  days: "their roll-ups by the day",
} as const;

/** How memory has moved, and where nobody was looking. */
export function HistoryCard({ node }: { node: Pick<NodeDetail, "id" | "pools"> }) {
  const [days, setDays] = useState("7");
  const query = useQuery(nodeHistoryQuery(node.id, Number(days)));
  return (
    <QueryView query={query} skeleton={<CardSkeleton />}>
      {(history) => {
        const rows = historyRows(history);
        return (
          <QuestionCard
            title={historyTitle(history)}
            description={`From ${SOURCES[history.source]}, one point per ${formatDuration(history.width_seconds)} where that is wider.`}
            actions={
              <>
                <SegmentedControl
                  size="xs"
                  value={days}
                  onChange={setDays}
                  aria-label="Span of time"
                  data={SPANS}
                />
                <CsvButton
                  path={csvPath(`/api/v1/nodes/${node.id}/history.csv`, {
                    from: history.start_at,
                    to: history.end_at,
                  })}
                />
              </>
            }
          >
            {history.points.length < 2 ? (
              <StateText>There is one point so far; a line needs two.</StateText>
            ) : (
              <>
                <LineChart
                  title="Memory over time"
                  rows={rows}
                  series={memorySeries(node.pools)}
                  xAxis={timeAxis(rows)}
                  valueAxis={VALUE_AXIS}
                  height={240}
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

/** The lowest MemAvailable, and how long nobody was looking. */
export function historyTitle({ points, gaps }: NodeHistory): string {
  const known = points.map((point) => point.mem_available_bytes_min).filter((bytes) => bytes !== null);
  if (known.length === 0) return "How has memory moved?";
  const silentSeconds = gaps.reduce(
    (sum, gap) => sum + (new Date(gap.end_at).getTime() - new Date(gap.start_at).getTime()) / 1000,
    0,
  );
  const silent =
    gaps.length === 0
      ? ""
      : `; ${formatCount(gaps.length)} ${gaps.length === 1 ? "gap" : "gaps"} of ${formatDuration(silentSeconds)} in all, of which nothing is known`;
  return `At least ${formatBytes(Math.min(...known))} stayed available${silent}.`;
}
