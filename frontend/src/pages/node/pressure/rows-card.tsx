import { NativeSelect } from "@mantine/core";
import { useState } from "react";
import type { RowMeasurement } from "@/api/types";
import type { ChartAxis, ChartSeries, ValueAxis } from "@/components/charts/chart-types";
import { LineChart } from "@/components/charts/line-chart";
import { curveBacking, markerOf } from "@/components/curves/curve-series";
import { NotMeasured } from "@/components/curves/missing-curves";
import { Disclosure } from "@/components/ui/disclosure";
import { QuestionCard } from "@/components/ui/question-card";
import { Table } from "@/components/ui/table";
import { TableScroll } from "@/components/ui/table-scroll";
import { Unknown } from "@/components/ui/values";
import { pageSizeColor } from "@/lib/page-size";
import { formatBytes, formatCount, formatPercentChange, formatThroughput, MIB } from "@/lib/units";
import {
  changeToBase,
  type RowsCase,
  type RowsPivot,
  rowsFamilies,
  rowsFinding,
  rowsPivot,
  unmeasuredBackings,
  workerRows,
} from "./rows-table";

const WORKERS_AXIS: ChartAxis = {
  label: "Workers (log2)",
  scale: "log2",
  format: formatCount,
  describe: (workers) => `${formatCount(workers)} ${workers === 1 ? "worker" : "workers"}`,
};
const ROWS_AXIS: ValueAxis = { label: "rows per second", format: formatThroughput };
const TABLES_AXIS: ValueAxis = {
  label: "MiB of page tables over all workers",
  format: (mib) => formatBytes(mib === null ? null : mib * MIB),
};

function seriesOf(backings: readonly string[], measurements: readonly RowMeasurement[]): ChartSeries[] {
  return backings.map((backing) => {
    const kind = curveBacking({ backing, backing_kind: null });
    const pageBytes = measurements.find((found) => found.backing === backing)?.page_bytes ?? 0;
    return {
      key: backing,
      label: kind === "thp" ? "THP" : `${backing} pages`,
      short: backing,
      color: pageSizeColor(pageBytes, kind),
      marker: markerOf(kind, pageBytes),
    };
  });
}

/** Rows read per second from a shared segment over workers, and beneath it what its page tables cost. */
export function RowsCard({ measurements }: { measurements: readonly RowMeasurement[] }) {
  const [chosen, choose] = useState<string | null>(null);
  const pivot = rowsPivot(measurements);
  const families = rowsFamilies(pivot);
  const family = families.find(({ name }) => name === chosen) ?? families[0];
  if (!family) return null;
  const unmeasured = unmeasuredBackings(pivot);
  const backings = pivot.backings.filter((name) => unmeasured.every(({ backing }) => backing !== name));
  const series = seriesOf(backings, measurements);
  const tables = workerRows(family, backings, ({ vm_pte_bytes_total: bytes }) =>
    bytes === null ? null : bytes / MIB,
  );
  const hasTables = tables.some(({ values }) => Object.values(values).some((value) => value !== null));
  return (
    <QuestionCard
      title={rowsFinding(pivot)}
      description="Workers read rows of a shared segment, as a database reads its buffer pool."
      actions={
        families.length > 1 && (
          <NativeSelect
            aria-label="Way of reading"
            data={families.map(({ name }) => name)}
            value={family.name}
            onChange={(event) => choose(event.currentTarget.value)}
            size="xs"
          />
        )
      }
    >
      <LineChart
        title={`Rows per second, ${family.name}`}
        rows={workerRows(family, backings, ({ rows_per_second: rate }) => rate)}
        series={series}
        xAxis={WORKERS_AXIS}
        valueAxis={ROWS_AXIS}
        baseline={pivot.base ?? undefined}
        height={260}
      />
      {hasTables && (
        <LineChart
          title={`Page tables, ${family.name}`}
          rows={tables}
          series={series}
          xAxis={WORKERS_AXIS}
          valueAxis={TABLES_AXIS}
          height={150}
        />
      )}
      <Disclosure label={`All ${formatCount(pivot.cases.length)} ways of reading as a table`}>
        <RowsTable pivot={pivot} backings={backings} />
      </Disclosure>
      <NotMeasured
        items={unmeasured.map((measurement) => ({
          key: measurement.backing,
          pageBytes: measurement.page_bytes ?? 0,
          kind: curveBacking({ backing: measurement.backing, backing_kind: null }),
          reason: measurement.reason ?? measurement.status ?? "no reason was given",
        }))}
      />
    </QuestionCard>
  );
}

function RowsTable({ pivot, backings }: { pivot: RowsPivot; backings: readonly string[] }) {
  return (
    <TableScroll label="Rows per second by page size" minWidth={640}>
      <Table verticalSpacing={5}>
        <Table.Thead>
          <Table.Tr>
            <Table.Th>Way of reading</Table.Th>
            <Table.Th className="hp-num">Workers</Table.Th>
            {backings.map((backing) => (
              <Table.Th key={backing} className="hp-num">
                {backing} (rows per second)
              </Table.Th>
            ))}
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {pivot.cases.map((found) => (
            <Table.Tr key={found.key}>
              <Table.Th scope="row" fw={400}>
                {found.name}
              </Table.Th>
              <Table.Td className="hp-num">{formatCount(found.workers)}</Table.Td>
              {backings.map((backing) => (
                <Table.Td key={backing} className="hp-num">
                  <Cell found={found} backing={backing} base={pivot.base} />
                </Table.Td>
              ))}
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </TableScroll>
  );
}

interface CellProps {
  found: RowsCase;
  backing: string;
  base: string | null;
}

function Cell({ found, backing, base }: CellProps) {
  const measurement = found.cells.get(backing);
  const why = measurement ? measurement.reason : "This combination was not tried.";
  if (measurement?.rows_per_second == null) return <Unknown why={why} />;
  const change = backing === base ? null : changeToBase(found, backing, base);
  return (
    <>
      {formatCount(measurement.rows_per_second)}
      {change !== null && <span className="hp-dim"> {formatPercentChange(change)}</span>}
    </>
  );
}
