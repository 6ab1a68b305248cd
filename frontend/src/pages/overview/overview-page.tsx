import { Stack } from "@mantine/core";
import { useInfiniteQuery } from "@tanstack/react-query";
import { nodesQuery } from "@/api/nodes";
import type { NodeSummary } from "@/api/types";
import { MemoryMap } from "@/components/memory-map/memory-map";
import { AddNode } from "@/components/ui/add-node";
import { StateBadge, SyntheticBadge } from "@/components/ui/badges";
import { LinkButton } from "@/components/ui/link-button";
import { PageHeader } from "@/components/ui/page-header";
import { QuestionCard } from "@/components/ui/question-card";
import { PageSkeleton } from "@/components/ui/skeletons";
import { Stat, Stats } from "@/components/ui/stat";
import { EmptyState, ErrorState, StateText } from "@/components/ui/states";
import { Table } from "@/components/ui/table";
import { TextLink } from "@/components/ui/text-link";
import { Bytes, When } from "@/components/ui/values";
import { formatCount, formatShare } from "@/lib/units";
import { type FleetSummary, fleetHeadline, summariseFleet } from "./fleet-summary";

const SHOWN_TO_LOOK_AT = 12;

/** The fleet at a glance. An empty fleet shows how to add a node. */
export function OverviewPage() {
  const query = useInfiniteQuery(nodesQuery(""));
  const nodes = query.data?.pages.flatMap((page) => page.items);
  if (!nodes) {
    return query.isError ? (
      <ErrorState error={query.error} onRetry={() => void query.refetch()} />
    ) : (
      <PageSkeleton />
    );
  }
  if (nodes.length === 0) {
    return (
      <>
        <PageHeader
          title="Overview"
          headline="The fleet is empty. Add the first node to see what huge pages would buy it."
        />
        <EmptyState title="Add a node with one command">
          <AddNode />
        </EmptyState>
      </>
    );
  }
  const fleet = summariseFleet(nodes, new Date());
  return (
    <>
      <PageHeader
        title="Overview"
        headline={fleetHeadline(fleet)}
        actions={
          <LinkButton to="/planner" search={{ node: nodes.length === 1 ? nodes[0]?.id : undefined }}>
            Plan a node
          </LinkButton>
        }
      />
      <FleetStats fleet={fleet} more={query.hasNextPage} />
      <Stack gap="md">
        <QuestionCard
          title="How much of the fleet's memory is set aside in huge pages?"
          description="Pool pages cannot be used for anything else, whether a database holds them or not."
        >
          <MemoryMap
            bars={[{ key: "fleet", label: "All nodes", totalBytes: fleet.memoryBytes, parts: fleet.parts }]}
          />
        </QuestionCard>
        <LookAt fleet={fleet} />
        <Newest nodes={nodes} />
      </Stack>
    </>
  );
}

function FleetStats({ fleet, more }: { fleet: FleetSummary; more: boolean }) {
  return (
    <Stats>
      <Stat
        label="Nodes"
        value={`${formatCount(fleet.nodes)}${more ? "+" : ""}`}
        note={more ? "the first page of the list" : undefined}
      />
      <Stat label="Memory" value={<Bytes value={fleet.memoryBytes} />} />
      <Stat
        label="In huge pages"
        value={<Bytes value={fleet.reservedBytes} />}
        note={`${formatShare(fleet.reservedBytes / fleet.memoryBytes)} of memory`}
      />
      <Stat
        label="Idle in pools"
        value={<Bytes value={fleet.idleBytes} />}
        note={fleet.unknownUse > 0 ? `unknown on ${formatCount(fleet.unknownUse)} more` : undefined}
      />
      <Stat
        label="Measured"
        value={`${formatCount(fleet.measured)} of ${formatCount(fleet.nodes)}`}
        note="have a benchmark run"
      />
    </Stats>
  );
}

function LookAt({ fleet }: { fleet: FleetSummary }) {
  const shown = fleet.toLookAt.slice(0, SHOWN_TO_LOOK_AT);
  return (
    <QuestionCard title="Which nodes need a look?">
      {shown.length === 0 ? (
        <StateText>Nothing stands out in the latest reports. A plan checks a node in full.</StateText>
      ) : (
        <Table verticalSpacing={8}>
          <Table.Thead>
            <Table.Tr>
              <Table.Th>Node</Table.Th>
              <Table.Th>What stands out</Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {shown.map(({ node, observations }) => (
              <Table.Tr key={node.id}>
                <Table.Th scope="row" style={{ verticalAlign: "top" }}>
                  <TextLink to="/nodes/$nodeId" params={{ nodeId: node.id }}>
                    {node.name}
                  </TextLink>{" "}
                  {node.synthetic && <SyntheticBadge />}
                </Table.Th>
                <Table.Td>
                  <Stack gap={6}>
                    {observations.map(({ code, state, text }) => (
                      <div
                        key={`${code}:${text}`}
                        style={{
                          display: "flex",
                          flexWrap: "wrap",
                          gap: "2px 8px",
                          alignItems: "flex-start",
                        }}
                      >
                        <StateBadge state={state} />
                        <span style={{ flex: "1 1 14rem" }}>{text}</span>
                      </div>
                    ))}
                  </Stack>
                </Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      )}
      {fleet.toLookAt.length > shown.length && (
        <StateText>
          {formatCount(fleet.toLookAt.length - shown.length)} more are in the list of nodes.
        </StateText>
      )}
    </QuestionCard>
  );
}

function Newest({ nodes }: { nodes: readonly NodeSummary[] }) {
  const newest = [...nodes].sort((a, b) => b.last_report_at.localeCompare(a.last_report_at)).slice(0, 5);
  return (
    <QuestionCard title="Who reported last?">
      <Table verticalSpacing={6}>
        <Table.Tbody>
          {newest.map((node) => (
            <Table.Tr key={node.id}>
              <Table.Th scope="row" fw={400}>
                <TextLink to="/nodes/$nodeId" params={{ nodeId: node.id }}>
                  {node.name}
                </TextLink>{" "}
                {node.synthetic && <SyntheticBadge />}
              </Table.Th>
              <Table.Td className="hp-num">
                <Bytes value={node.mem_total_bytes} />
              </Table.Td>
              <Table.Td className="hp-num">
                <When iso={node.last_report_at} />
              </Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </QuestionCard>
  );
}
