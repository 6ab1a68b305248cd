import { useQuery } from "@tanstack/react-query";
import { nodeProcessesQuery } from "@/api/nodes";
import type { ProcessMemory } from "@/api/types";
import { QueryView } from "@/components/ui/query-view";
import { QuestionCard } from "@/components/ui/question-card";
import { CardSkeleton } from "@/components/ui/skeletons";
import { StateText } from "@/components/ui/states";
import { Table } from "@/components/ui/table";
import { TableScroll } from "@/components/ui/table-scroll";
import { Bytes } from "@/components/ui/values";
import { formatBytes, formatCount } from "@/lib/units";

const SHOWN = 12;

/** Memory of one process in the huge page pools; null when either part is unknown. */
function hugetlbBytes(process: ProcessMemory): number | null {
  return process.private_hugetlb_bytes === null || process.shared_hugetlb_bytes === null
    ? null
    : process.private_hugetlb_bytes + process.shared_hugetlb_bytes;
}

/** Which processes use huge pages, and what their page tables cost. */
export function ProcessesCard({ nodeId }: { nodeId: string }) {
  const query = useQuery(nodeProcessesQuery(nodeId));
  return (
    <QueryView query={query} skeleton={<CardSkeleton />}>
      {({ processes }) => (
        <QuestionCard
          title={processesTitle(processes)}
          description="The largest processes of the newest sample."
        >
          {processes.length === 0 ? (
            <StateText>The report lists no process. The agent may lack the right to read them.</StateText>
          ) : (
            <TableScroll label="Processes" minWidth={640}>
              <Table verticalSpacing={5}>
                <Table.Thead>
                  <Table.Tr>
                    <Table.Th>Process</Table.Th>
                    <Table.Th className="hp-num">PID</Table.Th>
                    <Table.Th className="hp-num">Resident</Table.Th>
                    <Table.Th className="hp-num">In pools</Table.Th>
                    <Table.Th className="hp-num">THP</Table.Th>
                    <Table.Th className="hp-num">Page tables</Table.Th>
                  </Table.Tr>
                </Table.Thead>
                <Table.Tbody>
                  {processes.slice(0, SHOWN).map((process) => (
                    <Table.Tr key={`${process.pid}:${process.start_time_ticks}`}>
                      <Table.Th scope="row" fw={400} className="hp-mono">
                        {process.name}
                      </Table.Th>
                      <Table.Td className="hp-num">{process.pid}</Table.Td>
                      <Table.Td className="hp-num">
                        <Bytes value={process.rss_bytes} />
                      </Table.Td>
                      <Table.Td className="hp-num">
                        <Bytes value={hugetlbBytes(process)} />
                      </Table.Td>
                      <Table.Td className="hp-num">
                        <Bytes value={process.anon_huge_bytes} />
                      </Table.Td>
                      <Table.Td className="hp-num">
                        <Bytes value={process.vm_pte_bytes} />
                      </Table.Td>
                    </Table.Tr>
                  ))}
                </Table.Tbody>
              </Table>
            </TableScroll>
          )}
        </QuestionCard>
      )}
    </QueryView>
  );
}

function processesTitle(processes: readonly ProcessMemory[]): string {
  const known = processes.map(hugetlbBytes).filter((bytes) => bytes !== null);
  const users = known.filter((bytes) => bytes > 0);
  if (users.length > 0) {
    const most = Math.max(...users);
    return `${formatCount(users.length)} ${users.length === 1 ? "process uses" : "processes use"} huge page pools, up to ${formatBytes(most)} each.`;
  }
  return known.length > 0 ? "No process uses the huge page pools." : "Which processes use huge pages?";
}
