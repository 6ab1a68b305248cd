import { SegmentedControl } from "@mantine/core";
import { useState } from "react";
import type { RowMeasurement } from "@/api/types";
import { curveBacking } from "@/components/curves/curve-series";
import { NotMeasured } from "@/components/curves/missing-curves";
import { QuestionCard } from "@/components/ui/question-card";
import { Table } from "@/components/ui/table";
import { TableScroll } from "@/components/ui/table-scroll";
import { Bytes, Unknown } from "@/components/ui/values";
import { formatCount, formatPercentChange } from "@/lib/units";
import { changeToBase, type RowsCase, rowsFinding, rowsPivot, unmeasuredBackings } from "./rows-table";

type Metric = "rows" | "page_tables";

/** Rows read per second from a shared segment on each backing, and what its page tables cost. */
export function RowsCard({ measurements }: { measurements: readonly RowMeasurement[] }) {
  const [metric, setMetric] = useState<Metric>("rows");
  const pivot = rowsPivot(measurements);
  if (pivot.cases.length === 0) return null;
  const unmeasured = unmeasuredBackings(pivot);
  const backings = pivot.backings.filter((name) => unmeasured.every(({ backing }) => backing !== name));
  return (
    <QuestionCard
      title={rowsFinding(pivot)}
      description="Workers read rows of a shared segment, as a database reads its buffer pool. The percentage compares with 4K pages."
      actions={
        <SegmentedControl
          size="xs"
          value={metric}
          onChange={(value) => setMetric(value as Metric)}
          aria-label="Figure"
          data={[
            { value: "rows", label: "Rows per second" },
            { value: "page_tables", label: "Page tables" },
          ]}
        />
      }
    >
      <TableScroll label="Rows per second by page size" minWidth={640}>
        <Table verticalSpacing={5}>
          <Table.Thead>
            <Table.Tr>
              <Table.Th>Way of reading</Table.Th>
              <Table.Th className="hp-num">Workers</Table.Th>
              {backings.map((backing) => (
                <Table.Th key={backing} className="hp-num">
                  {backing} {metric === "rows" ? "(rows/s)" : ""}
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
                    <Cell found={found} backing={backing} metric={metric} />
                  </Table.Td>
                ))}
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </TableScroll>
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

function Cell({ found, backing, metric }: { found: RowsCase; backing: string; metric: Metric }) {
  const measurement = found.cells.get(backing);
  const why = measurement ? measurement.reason : "This combination was not tried.";
  if (metric === "page_tables") return <Bytes value={measurement?.vm_pte_bytes_total} why={why} />;
  if (measurement?.rows_per_second == null) return <Unknown why={why} />;
  const change = backing === "4K" ? null : changeToBase(found, backing);
  return (
    <>
      {formatCount(measurement.rows_per_second)}
      {change !== null && <span className="hp-dim"> {formatPercentChange(change)}</span>}
    </>
  );
}
