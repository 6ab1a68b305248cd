import type { RunComparison, TlbLevel } from "@/api/types";
import { bestLevels } from "@/components/curves/curve-series";
import { kindLabel, sourceOf } from "@/components/tlb-picture/tlb-model";
import { SourceBadge } from "@/components/ui/badges";
import { QuestionCard } from "@/components/ui/question-card";
import { Table } from "@/components/ui/table";
import { TableScroll } from "@/components/ui/table-scroll";
import { PageSize, Unknown } from "@/components/ui/values";
import { formatCount } from "@/lib/units";
import { runLabels, runLetter } from "./compare-rows";

interface DifferenceRow {
  key: string;
  name: string;
  pageBytes: number;
  levels: (TlbLevel | null)[];
  differs: boolean;
}

/** The TLB levels of all runs, lined up; a value that a run lacks is null. */
function geometryRows(comparison: RunComparison): DifferenceRow[] {
  const best = comparison.geometries.map((geometry) => bestLevels(geometry?.levels ?? []));
  const keyOf = (level: TlbLevel) => `${level.level}:${level.kind}:${level.page_bytes}`;
  const rows = new Map<string, TlbLevel>();
  for (const level of best.flat()) if (!rows.has(keyOf(level))) rows.set(keyOf(level), level);
  return [...rows.entries()]
    .sort(([, a], [, b]) => a.level - b.level || a.kind.localeCompare(b.kind) || a.page_bytes - b.page_bytes)
    .map(([key, level]) => {
      const levels = best.map((found) => found.find((candidate) => keyOf(candidate) === key) ?? null);
      const known = levels.map((entry) => entry?.entries).filter((entries) => entries != null);
      return {
        key,
        name: `L${level.level} ${kindLabel(level.kind)}`,
        pageBytes: level.page_bytes,
        levels,
        differs: new Set(known).size > 1,
      };
    });
}

/** TLB entries of the runs side by side. */
export function GeometryDifferences({ comparison }: { comparison: RunComparison }) {
  const rows = geometryRows(comparison);
  if (rows.length === 0) return null;
  const different = rows.filter((row) => row.differs).length;
  return (
    <QuestionCard
      title={
        different === 0
          ? "The TLB geometries agree."
          : `The TLB geometries differ in ${different} of ${rows.length} values.`
      }
    >
      <TableScroll label="TLB entries by run" minWidth={560}>
        <Table verticalSpacing={5}>
          <Table.Thead>
            <Table.Tr>
              <Table.Th>Level</Table.Th>
              <Table.Th className="hp-num">Page size</Table.Th>
              {runLabels(comparison.runs).map((label, index) => (
                <Table.Th key={label} className="hp-num">
                  {runLetter(index)} {label} (entries)
                </Table.Th>
              ))}
              <Table.Th />
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {rows.map((row) => (
              <Table.Tr key={row.key}>
                <Table.Th scope="row" fw={400}>
                  {row.name}
                </Table.Th>
                <Table.Td className="hp-num">
                  <PageSize bytes={row.pageBytes} />
                </Table.Td>
                {row.levels.map((level, index) => (
                  <Table.Td key={comparison.runs[index]?.id} className="hp-num">
                    {level === null || level.entries === null ? (
                      <Unknown />
                    ) : (
                      <>
                        {formatCount(level.entries)} <SourceBadge source={sourceOf(level.source)} />
                      </>
                    )}
                  </Table.Td>
                ))}
                <Table.Td>{row.differs ? "differs" : ""}</Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </TableScroll>
    </QuestionCard>
  );
}
