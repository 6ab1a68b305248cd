import { Checkbox, Group } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { nodeRunsQuery } from "@/api/nodes";
import type { Run } from "@/api/types";
import { StateBadge } from "@/components/ui/badges";
import { LinkButton } from "@/components/ui/link-button";
import { QueryView } from "@/components/ui/query-view";
import { QuestionCard } from "@/components/ui/question-card";
import { TableSkeleton } from "@/components/ui/skeletons";
import { StateText } from "@/components/ui/states";
import { Table } from "@/components/ui/table";
import { TableScroll } from "@/components/ui/table-scroll";
import { Known, When } from "@/components/ui/values";
import { formatDuration } from "@/lib/units";

/** The benchmark runs of a node; two or more can be compared. */
export function RunsCard({ nodeId }: { nodeId: string }) {
  const query = useQuery(nodeRunsQuery(nodeId));
  const [chosen, setChosen] = useState<readonly string[]>([]);
  return (
    <QueryView query={query} skeleton={<TableSkeleton rows={3} />}>
      {({ items }) => (
        <QuestionCard
          title={items.length === 0 ? "This node has not been measured." : "When was it measured?"}
          actions={
            items.length > 1 && (
              <LinkButton
                to="/compare"
                search={{ runs: [...chosen] }}
                variant="default"
                size="compact-sm"
                disabled={chosen.length < 2}
              >
                {chosen.length < 2 ? "Choose two runs to compare" : `Compare ${chosen.length} runs`}
              </LinkButton>
            )
          }
        >
          {items.length === 0 ? (
            <StateText>
              Run <span className="hp-mono">hugeplan-agent once --measure quick</span> on the node to measure
              its TLB. It takes about a minute.
            </StateText>
          ) : (
            <RunTable
              runs={items}
              chosen={chosen}
              onToggle={(id) =>
                setChosen((ids) =>
                  ids.includes(id) ? ids.filter((other) => other !== id) : [...ids, id].slice(-6),
                )
              }
            />
          )}
        </QuestionCard>
      )}
    </QueryView>
  );
}

interface RunTableProps {
  runs: readonly Run[];
  chosen: readonly string[];
  onToggle: (id: string) => void;
}

function RunTable({ runs, chosen, onToggle }: RunTableProps) {
  return (
    <TableScroll label="Runs" minWidth={560}>
      <Table verticalSpacing={6}>
        <Table.Thead>
          <Table.Tr>
            {runs.length > 1 && <Table.Th>Compare</Table.Th>}
            <Table.Th>Started</Table.Th>
            <Table.Th>Profile</Table.Th>
            <Table.Th className="hp-num">Took</Table.Th>
            <Table.Th>Sections</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {runs.map((run) => (
            <Table.Tr key={run.id}>
              {runs.length > 1 && (
                <Table.Td>
                  <Checkbox
                    checked={chosen.includes(run.id)}
                    onChange={() => onToggle(run.id)}
                    aria-label={`Compare the run started ${run.started_at}`}
                  />
                </Table.Td>
              )}
              <Table.Td>
                <When iso={run.started_at} />
              </Table.Td>
              <Table.Td>
                <Known value={run.profile} />
              </Table.Td>
              <Table.Td className="hp-num">{formatDuration(run.duration_seconds)}</Table.Td>
              <Table.Td>
                <Group gap={6}>
                  {run.sections.map((section) => (
                    <StateBadge
                      key={section.name}
                      state={section.status === "ok" ? "ok" : "unknown"}
                      text={
                        section.status === "ok"
                          ? section.name
                          : `${section.name}: ${section.reason ?? section.status}`
                      }
                    />
                  ))}
                </Group>
              </Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </TableScroll>
  );
}
