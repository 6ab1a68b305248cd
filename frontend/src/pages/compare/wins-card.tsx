import { useQueries, useQuery } from "@tanstack/react-query";
import { pageSizeWinsQuery } from "@/api/fleet";
import type { PageSizeWins, Run, SizeWins } from "@/api/types";
import { SyntheticBadge } from "@/components/ui/badges";
import { QueryView } from "@/components/ui/query-view";
import { QuestionCard } from "@/components/ui/question-card";
import { TableSkeleton } from "@/components/ui/skeletons";
import { StateText } from "@/components/ui/states";
import { Table } from "@/components/ui/table";
import { TableScroll } from "@/components/ui/table-scroll";
import { Term } from "@/components/ui/term";
import { Unknown } from "@/components/ui/values";
import { formatCount, formatPercentChange, formatShare } from "@/lib/units";
import { runLabels, runLetter } from "./compare-rows";

const TIE = "tie";

interface MatrixRow {
  key: string;
  name: string;
  cases: number;
  sizes: readonly SizeWins[];
}

/** Which page size wins most cases, in one sentence. */
export function winsTitle({ cases, runs, sizes }: Pick<PageSizeWins, "cases" | "runs" | "sizes">): string {
  const [best] = sizes.filter(({ backing }) => backing !== TIE).sort((a, b) => b.share - a.share);
  if (cases === 0 || !best) return "No point of these runs was measured with two or more page sizes.";
  const over = `of ${formatCount(cases)} cases over ${formatCount(runs)} ${runs === 1 ? "run" : "runs"}`;
  if (best.wins === 0) return `No page size is clearly fastest in any ${over}.`;
  const ties = sizes.find(({ backing }) => backing === TIE)?.share ?? 0;
  if (ties > best.share)
    return `No page size is clearly fastest in ${formatShare(ties)} ${over}; ${best.backing === "THP" ? "THP is" : `${best.backing} pages are`} in ${formatShare(best.share)}.`;
  const mean =
    best.mean_delta_percent === null
      ? ""
      : `; ${best.backing === "THP" ? "its" : "their"} mean time against base pages is ${formatPercentChange(best.mean_delta_percent / 100)}`;
  return `${best.backing === "THP" ? "THP wins" : `${best.backing} pages win`} ${formatShare(best.share)} ${over}${mean}.`;
}

const DESCRIPTION =
  "A case is one point measured with two or more page sizes. A size wins it when its interval lies below every other's; else it is a tie. Percentages beneath are the mean time against base pages; below zero is faster.";

/** The win matrix over the chosen runs: a row per run, and one for all of them. */
export function RunWinsCard({ runs }: { runs: readonly Run[] }) {
  const all = useQuery(
    pageSizeWinsQuery(
      {},
      runs.map(({ id }) => id),
    ),
  );
  const each = useQueries({ queries: runs.map(({ id }) => pageSizeWinsQuery({}, [id])) });
  const labels = runLabels(runs);
  return (
    <QueryView query={all} skeleton={<TableSkeleton rows={3} />}>
      {(data) => (
        <QuestionCard title={winsTitle(data)} description={DESCRIPTION}>
          <Matrix
            rowHeader="Run"
            rows={[
              { key: "all", name: "All of them", cases: data.cases, sizes: data.sizes },
              ...each.flatMap(({ data: own }, index) =>
                own
                  ? [
                      {
                        key: runs[index]?.id ?? "",
                        name: `${runLetter(index)} ${labels[index]}`,
                        cases: own.cases,
                        sizes: own.sizes,
                      },
                    ]
                  : [],
              ),
            ]}
          />
          {each.some(({ isError }) => isError) && (
            <StateText>Some runs could not be counted by themselves; the first row holds them.</StateText>
          )}
        </QuestionCard>
      )}
    </QueryView>
  );
}

/** The win matrix over the newest run of every node, by machine type. Synthetic nodes count where no real one does. */
export function FleetWinsCard() {
  const real = useQuery(pageSizeWinsQuery({ synthetic: false }));
  const synthetic = useQuery(pageSizeWinsQuery({ synthetic: true }));
  const areSynthetic = real.data?.runs === 0 && (synthetic.data?.runs ?? 0) > 0;
  const nodes = areSynthetic
    ? "The newest run of each node; all of them are synthetic."
    : `The newest run of each node.${synthetic.data?.runs ? " Synthetic nodes are not counted." : ""}`;
  return (
    <QueryView query={areSynthetic ? synthetic : real} skeleton={<TableSkeleton rows={4} />}>
      {(data) => (
        <QuestionCard
          title={winsTitle(data)}
          description={`${nodes} ${DESCRIPTION}`}
          actions={areSynthetic && <SyntheticBadge />}
        >
          {data.cases > 0 && (
            <Matrix
              rowHeader="Machine type"
              rows={[
                { key: "all", name: "All machines", cases: data.cases, sizes: data.sizes },
                ...data.machines.map((machine) => ({
                  key: machine.machine_type ?? "",
                  name: machine.machine_type ?? "unknown",
                  cases: machine.cases,
                  sizes: machine.sizes,
                })),
              ]}
            />
          )}
        </QuestionCard>
      )}
    </QueryView>
  );
}

const ORDER = ["4K", "16K", "64K", "THP"];
const rank = (backing: string) => {
  if (backing === TIE) return 1000;
  const found = ORDER.indexOf(backing);
  return found >= 0 ? found : 100 + (backing.endsWith("G") ? 10_000 : 0) / 100 + Number.parseInt(backing, 10);
};

function Matrix({ rows, rowHeader }: { rows: readonly MatrixRow[]; rowHeader: string }) {
  const backings = [...new Set(rows.flatMap(({ sizes }) => sizes.map(({ backing }) => backing)))].sort(
    (a, b) => rank(a) - rank(b),
  );
  return (
    <TableScroll label="Wins by page size" minWidth={0} maxHeight={420}>
      <Table verticalSpacing={5} stickyHeader stacks>
        <Table.Thead>
          <Table.Tr>
            <Table.Th>{rowHeader}</Table.Th>
            {backings.map((backing) => (
              <Table.Th key={backing} className="hp-num">
                {backing === TIE ? (
                  <Term name="interval">Ties</Term>
                ) : backing === "THP" ? (
                  <Term name="thp">THP</Term>
                ) : (
                  backing
                )}
              </Table.Th>
            ))}
            <Table.Th className="hp-num">Cases</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {rows.map((row) => (
            <Table.Tr key={row.key}>
              <Table.Th scope="row" fw={row.key === "all" ? 600 : 400} className="hp-anywhere">
                {row.name}
              </Table.Th>
              {backings.map((backing) => (
                <Table.Td key={backing} className="hp-num" label={backing === TIE ? "Ties" : backing}>
                  <WinsCell
                    size={row.sizes.find((size) => size.backing === backing)}
                    sizes={row.sizes}
                    cases={row.cases}
                  />
                </Table.Td>
              ))}
              <Table.Td className="hp-num" label="Cases">
                {formatCount(row.cases)}
              </Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </TableScroll>
  );
}

interface WinsCellProps {
  size: SizeWins | undefined;
  sizes: readonly SizeWins[];
  cases: number;
}

function WinsCell({ size, sizes, cases }: WinsCellProps) {
  if (!size || cases === 0) return <Unknown why="Not measured here." />;
  const most = Math.max(...sizes.filter(({ backing }) => backing !== TIE).map(({ share }) => share));
  const text = formatShare(size.share);
  return (
    <>
      {size.backing !== TIE && size.share === most && most > 0 ? <strong>{text}</strong> : text}
      {size.backing !== TIE && size.mean_delta_percent !== null && size.mean_delta_percent !== 0 && (
        <div className="hp-dim hp-small">{formatPercentChange(size.mean_delta_percent / 100)}</div>
      )}
    </>
  );
}
