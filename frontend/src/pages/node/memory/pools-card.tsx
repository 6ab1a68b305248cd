import type { NodeDetail } from "@/api/types";
import { PageSizeBadge } from "@/components/ui/badges";
import { QuestionCard } from "@/components/ui/question-card";
import { StateText } from "@/components/ui/states";
import { Table } from "@/components/ui/table";
import { TableScroll } from "@/components/ui/table-scroll";
import { Term } from "@/components/ui/term";
import { Bytes, Known } from "@/components/ui/values";
import { formatPages } from "@/lib/page-size";
import { formatBytes, formatCount } from "@/lib/units";
import { largestIdlePool, type PoolRow, poolRows } from "./pool-rows";

/** Pools per NUMA node: requested at boot, allocated, used, free. */
export function PoolsCard({ node }: { node: NodeDetail }) {
  const rows = poolRows(node.sample);
  const asked = node.boot_pools;
  return (
    <QuestionCard
      title={poolsTitle(rows)}
      description="Requested at boot is what the kernel command line reserves on the whole node. A pool can also be set while the node runs."
    >
      {rows.length === 0 ? (
        <StateText>The report lists no pool. The kernel may be built without huge pages.</StateText>
      ) : (
        <TableScroll label="Pools" minWidth={640}>
          <Table verticalSpacing={6} stacks>
            <Table.Thead>
              <Table.Tr>
                <Table.Th>Page size</Table.Th>
                <Table.Th className="hp-num">
                  <Term name="numa-node">NUMA node</Term>
                </Table.Th>
                <Table.Th className="hp-num">
                  <Term name="requested-at-boot">Requested at boot (all NUMA nodes)</Term>
                </Table.Th>
                <Table.Th className="hp-num">Allocated (pages)</Table.Th>
                <Table.Th className="hp-num">Used (pages)</Table.Th>
                <Table.Th className="hp-num">Free (pages)</Table.Th>
                <Table.Th className="hp-num">
                  <Term name="surplus">Surplus (pages)</Term>
                </Table.Th>
                <Table.Th className="hp-num">Size</Table.Th>
              </Table.Tr>
            </Table.Thead>
            <Table.Tbody>
              {rows.map((row, index) => (
                <Table.Tr key={`${row.pageBytes}:${row.numaNode}`}>
                  <Table.Th scope="row">
                    <PageSizeBadge pageBytes={row.pageBytes} kind="hugetlb" />
                  </Table.Th>
                  <Table.Td className="hp-num" label="NUMA node">
                    {row.numaNode}
                  </Table.Td>
                  {rows[index - 1]?.pageBytes !== row.pageBytes && (
                    <Table.Td
                      className="hp-num"
                      label="Requested at boot (all NUMA nodes)"
                      rowSpan={rows.filter((other) => other.pageBytes === row.pageBytes).length}
                    >
                      <Known
                        value={
                          asked &&
                          formatCount(asked.find((pool) => pool.page_bytes === row.pageBytes)?.pages ?? 0)
                        }
                        why="The report has no kernel command line."
                      />
                    </Table.Td>
                  )}
                  <Table.Td className="hp-num" label="Allocated (pages)">
                    {formatCount(row.allocated)}
                  </Table.Td>
                  <Table.Td className="hp-num" label="Used (pages)">
                    <Known value={row.used === null ? null : formatCount(row.used)} />
                  </Table.Td>
                  <Table.Td className="hp-num" label="Free (pages)">
                    <Known value={row.free === null ? null : formatCount(row.free)} />
                  </Table.Td>
                  <Table.Td className="hp-num" label="Surplus (pages)">
                    <Known value={row.surplus === null ? null : formatCount(row.surplus)} />
                  </Table.Td>
                  <Table.Td className="hp-num" label="Size">
                    <Bytes value={row.allocated * row.pageBytes} />
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

/** What to know of the pools first. */
export function poolsTitle(rows: readonly PoolRow[]): string {
  const given = rows.filter((row) => row.allocated > 0);
  if (given.length === 0) return "No huge pages are reserved on this node.";
  const first = largestIdlePool(given);
  if (first)
    return `${formatPages(first.allocated, first.pageBytes)} on NUMA node ${first.numaNode} are reserved and nothing uses them.`;
  const unknown = given.some((row) => row.free === null);
  if (unknown) return "How much of the pools is used is not known.";
  const idleBytes = given.reduce((sum, row) => sum + (row.free ?? 0) * row.pageBytes, 0);
  return idleBytes === 0
    ? "Every reserved huge page is used."
    : `${formatBytes(idleBytes)} of the pools is idle.`;
}
