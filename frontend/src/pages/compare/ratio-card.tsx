import type { RunComparison } from "@/api/types";
import { QuestionCard } from "@/components/ui/question-card";
import { Table } from "@/components/ui/table";
import { TableScroll } from "@/components/ui/table-scroll";
import { Term } from "@/components/ui/term";
import { Unknown } from "@/components/ui/values";
import { formatBytes, formatNs } from "@/lib/units";
import { runLabels, runLetter } from "./compare-rows";
import { formatRatio, type RatioRow, ratioRows, verdict } from "./ratios";

/** Who wins: for each page size the time of each run, and its ratio to the first with an interval. */
export function RatioCard({ comparison, layout }: { comparison: RunComparison; layout: string }) {
  const rows = ratioRows(comparison, layout);
  const labels = runLabels(comparison.runs);
  return (
    <QuestionCard
      title={verdict(rows, runLetter)}
      description={`A is ${labels[0]}. Time of one access at the largest footprint that two runs share; × is the time relative to A, with the interval that both scatters (10th to 90th percentile) allow. A run wins where its interval lies below every other's.`}
    >
      {rows.length > 0 && (
        <TableScroll label="Times and ratios by page size" minWidth={0}>
          <Table verticalSpacing={5}>
            <Table.Thead>
              <Table.Tr>
                <Table.Th>Page size</Table.Th>
                <Table.Th>
                  <Term name="interval">Wins</Term>
                </Table.Th>
                {labels.map((label, index) => (
                  <Table.Th key={comparison.runs[index]?.id} className="hp-num">
                    {runLetter(index)} {label}
                  </Table.Th>
                ))}
              </Table.Tr>
            </Table.Thead>
            <Table.Tbody>
              {rows.map((row) => (
                <Table.Tr key={row.backing}>
                  <Table.Th scope="row" fw={400}>
                    {row.short}
                    <div className="hp-dim hp-small">over {formatBytes(row.footprintBytes)}</div>
                  </Table.Th>
                  <Table.Td>{row.winner === null ? "tie" : runLetter(row.winner)}</Table.Td>
                  {row.times.map((time, index) => (
                    <Table.Td key={comparison.runs[index]?.id} className="hp-num">
                      {time === null ? (
                        <Unknown why="This run did not measure it at this footprint." />
                      ) : (
                        <RatioCell row={row} index={index} ns={time.ns} />
                      )}
                    </Table.Td>
                  ))}
                </Table.Tr>
              ))}
            </Table.Tbody>
          </Table>
        </TableScroll>
      )}
    </QuestionCard>
  );
}

function RatioCell({ row, index, ns }: { row: RatioRow; index: number; ns: number }) {
  const ratio = row.ratios[index];
  const text = formatNs(ns);
  return (
    <>
      {row.winner === index ? <strong>{text}</strong> : text}
      {ratio && (
        <div className="hp-dim hp-small">
          {formatRatio(ratio.likely)} ({formatRatio(ratio.low)} to {formatRatio(ratio.high)})
        </div>
      )}
    </>
  );
}
