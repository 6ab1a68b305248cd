import { Table, Text } from "@mantine/core";
import type { Backtest, BacktestRow } from "@/api/types";
import { IntervalChart } from "@/components/charts/interval-chart";
import { StateBadge } from "@/components/ui/badges";
import { QuestionCard } from "@/components/ui/question-card";
import { StateText } from "@/components/ui/states";
import { TableScroll } from "@/components/ui/table-scroll";
import { formatPercentChange } from "@/lib/units";
import { token } from "@/theme/tokens";

type PredictedRow = BacktestRow & { predicted_percent: NonNullable<BacktestRow["predicted_percent"]> };

function isPredicted(row: BacktestRow): row is PredictedRow {
  return row.predicted_percent !== null && row.published_percent !== null;
}

const percent = (value: number) => formatPercentChange(value / 100);

/** Predicted beside published, and the results that the model cannot explain. */
export function BacktestCard({ backtest }: { backtest: Backtest }) {
  const predicted = backtest.items.filter(isPredicted);
  const insideRows = predicted.filter((row) => row.status === "inside");
  const outside = predicted.filter((row) => row.status !== "inside");
  const others = backtest.items.filter((row) => !isPredicted(row));
  return (
    <QuestionCard
      title={
        predicted.length === 0
          ? "The model has not been run against published results yet."
          : `The published value lies inside the predicted range in ${insideRows.length} of ${predicted.length} results.`
      }
      description="Bar: predicted range with its most likely value. Diamond: what was published. No parameter is fitted to these rows."
    >
      {outside.length > 0 && <Predicted rows={outside} title="Published outside of the predicted range" />}
      {insideRows.length > 0 && (
        <details>
          <summary style={{ cursor: "pointer", fontSize: 14 }}>
            {insideRows.length} results inside the predicted range
          </summary>
          <Predicted rows={insideRows} title="Published inside the predicted range" />
        </details>
      )}
      {others.length > 0 && <NotPredicted rows={others} />}
    </QuestionCard>
  );
}

function Predicted({ rows, title }: { rows: readonly PredictedRow[]; title: string }) {
  return (
    <IntervalChart
      title={title}
      nameHeader="Result"
      valueHeader="Gain"
      extraHeaders={["Published", "Verdict"]}
      format={percent}
      rows={rows.map((row) => ({
        key: row.id,
        name: <RowName row={row} />,
        range: row.predicted_percent,
        color: row.status === "inside" ? token("page-2m") : token("state-attention"),
        mark: row.published_percent,
        detail: row.reason ?? `${row.source}: published ${row.published}`,
        extra: [
          row.published_percent === null ? "" : percent(row.published_percent),
          <StateBadge
            key="verdict"
            state={row.status === "inside" ? "ok" : "attention"}
            text={row.status === "inside" ? "Inside" : "Outside"}
          />,
        ],
      }))}
    />
  );
}

function RowName({ row }: { row: BacktestRow }) {
  return (
    <div style={{ minWidth: 200, maxWidth: 320, lineHeight: 1.35 }}>
      <Text component="span" inherit lineClamp={2} title={row.workload ?? undefined}>
        {row.workload ?? row.system ?? row.id}
      </Text>
      <div style={{ color: "var(--hp-text-dim)", fontSize: 13 }}>
        {[row.page_size_a, row.page_size_b].filter(Boolean).join(" to ")}
      </div>
    </div>
  );
}

function NotPredicted({ rows }: { rows: readonly BacktestRow[] }) {
  const unexplained = rows.filter((row) => row.status === "unexplained");
  return (
    <details open={unexplained.length > 0 && rows.length < 12}>
      <summary style={{ cursor: "pointer", fontSize: 14 }}>
        {rows.length} results without a prediction ({unexplained.length} that the model cannot explain)
      </summary>
      {rows.length === 0 ? (
        <StateText>None.</StateText>
      ) : (
        <TableScroll label="Results without a prediction" minWidth={640}>
          <Table verticalSpacing={5}>
            <Table.Thead>
              <Table.Tr>
                <Table.Th>Result</Table.Th>
                <Table.Th>Published</Table.Th>
                <Table.Th>Why there is no prediction</Table.Th>
              </Table.Tr>
            </Table.Thead>
            <Table.Tbody>
              {rows.map((row) => (
                <Table.Tr key={row.id}>
                  <Table.Th scope="row" fw={400} style={{ maxWidth: 320 }}>
                    <RowName row={row} />
                  </Table.Th>
                  <Table.Td>{row.published}</Table.Td>
                  <Table.Td>{row.reason ?? row.status.replaceAll("_", " ")}</Table.Td>
                </Table.Tr>
              ))}
            </Table.Tbody>
          </Table>
        </TableScroll>
      )}
    </details>
  );
}
