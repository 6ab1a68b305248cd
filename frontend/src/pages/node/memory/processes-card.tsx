import { useQuery } from "@tanstack/react-query";
import { nodeProcessesQuery } from "@/api/nodes";
import type { NodeProcesses, ProcessMemory } from "@/api/types";
import { QueryView } from "@/components/ui/query-view";
import { QuestionCard } from "@/components/ui/question-card";
import { CardSkeleton } from "@/components/ui/skeletons";
import { StateText } from "@/components/ui/states";
import { Table } from "@/components/ui/table";
import { TableScroll } from "@/components/ui/table-scroll";
import { Term } from "@/components/ui/term";
import { Bytes, Unknown, When } from "@/components/ui/values";
import { pageSizeShort } from "@/lib/page-size";
import { formatBytes, formatCount } from "@/lib/units";
import { hugetlbBytes, limitText, type ProcessRow, processRows } from "./process-rows";
import { walkSentence } from "./walk-sentence";

const SHOWN = 20;

/** Which processes use which page size, what their page tables cost, and what their containers may use. */
export function ProcessesCard({ nodeId, basePageBytes }: { nodeId: string; basePageBytes: number }) {
  const query = useQuery(nodeProcessesQuery(nodeId));
  return (
    <QueryView query={query} skeleton={<CardSkeleton />}>
      {(data) => (
        <QuestionCard
          title={processesTitle(data.processes)}
          description={
            <>
              The newest sample, <When iso={data.taken_at} />. Users of huge page pools first.
            </>
          }
        >
          {data.walks.map((walks) => (
            <p key={walks.key}>
              <span className="hp-mono">{walks.engine}</span>, PID {walks.pid}: {walkSentence(walks)}{" "}
              <span className="hp-dim hp-small">
                Counted <When iso={walks.counters.counted_at} />.
              </span>
            </p>
          ))}
          {data.processes.length === 0 ? (
            <StateText>The report lists no process. The agent may lack the right to read them.</StateText>
          ) : (
            <ProcessTable data={data} basePageBytes={basePageBytes} />
          )}
        </QuestionCard>
      )}
    </QueryView>
  );
}

function ProcessTable({ data, basePageBytes }: { data: NodeProcesses; basePageBytes: number }) {
  const rows = processRows(data);
  return (
    <>
      <TableScroll label="Processes" minWidth={720}>
        <Table verticalSpacing={5}>
          <Table.Thead>
            <Table.Tr>
              <Table.Th>Process</Table.Th>
              <Table.Th className="hp-num">
                <Term name="huge-page-pool">In pools</Term>
              </Table.Th>
              <Table.Th className="hp-num">
                <Term name="thp">THP</Term>
              </Table.Th>
              <Table.Th className="hp-num">{pageSizeShort(basePageBytes)} pages</Table.Th>
              <Table.Th className="hp-num">
                <Term name="page-tables">Page tables</Term>
              </Table.Th>
              <Table.Th>
                <Term name="container-limit">Container, and its limit of huge pages</Term>
              </Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {rows.slice(0, SHOWN).map((row) => (
              <Table.Tr key={row.key} className="hp-top">
                <Table.Th scope="row" fw={400}>
                  <span className="hp-mono">{row.name}</span>
                  <div className="hp-dim hp-small">PID {row.pid}</div>
                </Table.Th>
                <Table.Td className="hp-num">
                  <Pools pools={row.pools} />
                </Table.Td>
                <Table.Td className="hp-num">
                  <Bytes value={row.thpBytes} />
                </Table.Td>
                <Table.Td className="hp-num">
                  <Bytes value={row.baseBytes} />
                </Table.Td>
                <Table.Td className="hp-num">
                  <Bytes value={row.pageTableBytes} />
                </Table.Td>
                <Table.Td>
                  <Container row={row} known={data.units !== null} />
                </Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </TableScroll>
      {rows.length > SHOWN && (
        <StateText>
          {formatCount(SHOWN)} of {formatCount(rows.length)} processes; the raw report has all.
        </StateText>
      )}
    </>
  );
}

function Pools({ pools }: Pick<ProcessRow, "pools">) {
  if (pools === null) return <Unknown why="The agent could not read this process's mappings." />;
  if (pools.length === 0) return <Bytes value={0} />;
  return pools.map(({ pageBytes, bytes }) => (
    <div key={pageBytes ?? 0}>
      <Bytes value={bytes} /> {pageBytes !== null && `in ${pageSizeShort(pageBytes)}`}
    </div>
  ));
}

function Container({ row, known }: { row: ProcessRow; known: boolean }) {
  if (!known) return <Unknown why="This agent does not report containers." />;
  if (row.unit === null) return <span className="hp-dim">none</span>;
  return (
    <span className="hp-anywhere">
      {row.unit.pod ? `${row.unit.pod}, ${row.unit.name}` : row.unit.name}
      {row.limits.map((limit) => (
        <div key={`${limit.cgroup_path}:${limit.page_bytes}`} className="hp-small">
          {limitText(limit)}
        </div>
      ))}
    </span>
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
