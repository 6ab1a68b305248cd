import type { NodeDetail } from "@/api/types";
import { PageSizeBadge } from "@/components/ui/badges";
import { QuestionCard } from "@/components/ui/question-card";
import { StateText } from "@/components/ui/states";
import { Table } from "@/components/ui/table";
import { TableScroll } from "@/components/ui/table-scroll";
import { Bytes, Known } from "@/components/ui/values";
import { formatBytes, formatCount, formatPages } from "@/lib/units";
import { type PoolRow, pagesAskedAtBoot, poolRows } from "./pool-rows";

/** Pools per NUMA node: asked, given, used, idle. */
export function PoolsCard({ node }: { node: NodeDetail }) {
  const rows = poolRows(node.sample);
  const asked = pagesAskedAtBoot(node.inventory.kernel_command_line, node.inventory.default_huge_page_bytes);
  return (
    <QuestionCard
      title={poolsTitle(rows)}
      description="Asked is what the kernel command line asks for on the whole node; a pool can also be set while the node runs."
    >
      {rows.length === 0 ? (
        <StateText>The report lists no pool. The kernel may be built without huge pages.</StateText>
      ) : (
        <TableScroll label="Pools" minWidth={640}>
          <Table verticalSpacing={6}>
            <Table.Thead>
              <Table.Tr>
                <Table.Th>Page size</Table.Th>
                <Table.Th className="hp-num">NUMA node</Table.Th>
                <Table.Th className="hp-num">Asked at boot (pages in all)</Table.Th>
                <Table.Th className="hp-num">Given (pages)</Table.Th>
                <Table.Th className="hp-num">Used (pages)</Table.Th>
                <Table.Th className="hp-num">Idle (pages)</Table.Th>
                <Table.Th className="hp-num">Surplus (pages)</Table.Th>
                <Table.Th className="hp-num">Size</Table.Th>
              </Table.Tr>
            </Table.Thead>
            <Table.Tbody>
              {rows.map((row, index) => (
                <Table.Tr key={`${row.pageBytes}:${row.numaNode}`}>
                  <Table.Th scope="row">
                    <PageSizeBadge pageBytes={row.pageBytes} kind="hugetlb" />
                  </Table.Th>
                  <Table.Td className="hp-num">{row.numaNode}</Table.Td>
                  {rows[index - 1]?.pageBytes !== row.pageBytes && (
                    <Table.Td
                      className="hp-num"
                      rowSpan={rows.filter((other) => other.pageBytes === row.pageBytes).length}
                    >
                      <Known
                        value={asked && formatCount(asked.get(row.pageBytes) ?? 0)}
                        why="The report has no kernel command line."
                      />
                    </Table.Td>
                  )}
                  <Table.Td className="hp-num">{formatCount(row.given)}</Table.Td>
                  <Table.Td className="hp-num">
                    <Known value={row.used === null ? null : formatCount(row.used)} />
                  </Table.Td>
                  <Table.Td className="hp-num">
                    <Known value={row.idle === null ? null : formatCount(row.idle)} />
                  </Table.Td>
                  <Table.Td className="hp-num">
                    <Known value={row.surplus === null ? null : formatCount(row.surplus)} />
                  </Table.Td>
                  <Table.Td className="hp-num">
                    <Bytes value={row.given * row.pageBytes} />
                  </Table.Td>
                </Table.Tr>
              ))}
            </Table.Tbody>
          </Table>
        </TableScroll>
      )}
    </QuestionCard>
  );
}

function poolsTitle(rows: readonly PoolRow[]): string {
  const given = rows.filter((row) => row.given > 0);
  if (given.length === 0) return "No huge pages are reserved on this node.";
  const idle = given.filter((row) => row.idle !== null && row.idle === row.given);
  const first = idle[0];
  if (first)
    return `${formatPages(first.given, first.pageBytes)} on NUMA node ${first.numaNode} are reserved and nothing uses them.`;
  const unknown = given.some((row) => row.idle === null);
  if (unknown) return "How much of the pools is used is not known.";
  const idleBytes = given.reduce((sum, row) => sum + (row.idle ?? 0) * row.pageBytes, 0);
  return idleBytes === 0
    ? "Every reserved huge page is used."
    : `${formatBytes(idleBytes)} of the pools is idle.`;
}
