import { Stack } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { fleetSummaryQuery } from "@/api/fleet";
import type { FleetSummary } from "@/api/types";
import { MemoryMap } from "@/components/memory-map/memory-map";
import { AddNode } from "@/components/ui/add-node";
import { type State, StateBadge } from "@/components/ui/badges";
import { LinkButton } from "@/components/ui/link-button";
import { PageHeader } from "@/components/ui/page-header";
import { QuestionCard } from "@/components/ui/question-card";
import { PageSkeleton } from "@/components/ui/skeletons";
import { Stat, Stats } from "@/components/ui/stat";
import { EmptyState, ErrorState, StateText } from "@/components/ui/states";
import { Bytes, When } from "@/components/ui/values";
import { formatCount, formatShare } from "@/lib/units";
import { fleetHeadline, fleetParts } from "./fleet-summary";
import classes from "./overview-page.module.css";

/** The whole fleet at a glance, from figures of the server: never from the first page of a list. */
export function OverviewPage() {
  const query = useQuery(fleetSummaryQuery());
  const fleet = query.data;
  if (!fleet) {
    return query.isError ? (
      <ErrorState error={query.error} onRetry={() => void query.refetch()} />
    ) : (
      <PageSkeleton />
    );
  }
  if (fleet.nodes === 0) {
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
  return (
    <>
      <PageHeader
        title="Overview"
        headline={fleetHeadline(fleet)}
        actions={<LinkButton to="/nodes">Choose a node to plan</LinkButton>}
      />
      <FleetStats fleet={fleet} />
      <Stack gap="md">
        <QuestionCard
          title="What does the fleet's memory do?"
          description="Pool pages cannot be used for anything else, whether a database holds them or not. The pale part of a pool is idle."
        >
          <MemoryMap
            legend="key"
            bars={[
              {
                key: "fleet",
                label: "All nodes",
                totalBytes: fleet.memory.mem_total_bytes,
                parts: fleetParts(fleet),
              },
            ]}
          />
        </QuestionCard>
        <Problems fleet={fleet} />
      </Stack>
    </>
  );
}

function FleetStats({ fleet }: { fleet: FleetSummary }) {
  const { memory } = fleet;
  const withPlan = fleet.nodes - (fleet.plan_states.none ?? 0);
  return (
    <Stats>
      <Stat
        label="Nodes"
        value={formatCount(fleet.nodes)}
        note={
          fleet.nodes_synthetic > 0
            ? `${formatCount(fleet.nodes_synthetic)} of them synthetic`
            : fleet.nodes_stale > 0
              ? `${formatCount(fleet.nodes_stale)} do not report`
              : undefined
        }
      />
      <Stat label="Memory" value={<Bytes value={memory.mem_total_bytes} />} />
      <Stat
        label="In huge pages"
        value={<Bytes value={memory.pool_bytes} />}
        note={`${formatShare(memory.pool_bytes / memory.mem_total_bytes)} of memory`}
      />
      <Stat label="Idle in pools" value={<Bytes value={memory.pool_idle_bytes} />} />
      <Stat
        label="Measured"
        value={`${formatCount(fleet.nodes_measured)} of ${formatCount(fleet.nodes)}`}
        note={`${formatCount(fleet.nodes_fractured)} fractured`}
      />
      <Stat
        label="Plan in force"
        value={formatCount(withPlan)}
        note={`${formatCount(fleet.plan_states.short ?? 0)} short of it`}
      />
    </Stats>
  );
}

const RANK: Record<string, number> = { wrong: 0, attention: 1, unknown: 2, ok: 3 };

/** The fleet's findings, the worst first, then by the number of nodes. */
function Problems({ fleet }: { fleet: FleetSummary }) {
  const findings = [...fleet.findings].sort(
    (a, b) => (RANK[a.state] ?? 4) - (RANK[b.state] ?? 4) || b.nodes - a.nodes,
  );
  return (
    <QuestionCard title="Which nodes need a look?" description={<Updated fleet={fleet} />}>
      {findings.length === 0 ? (
        <StateText>No check found anything in the latest reports. A plan checks a node in full.</StateText>
      ) : (
        <ul className={classes.findings}>
          {findings.map(({ code, state, title, nodes, oldest_since: since }) => (
            <li key={`${code}:${state}`}>
              <StateBadge state={state as State} />
              <span>{title}</span>
              <span className="hp-num">
                {formatCount(nodes)} {nodes === 1 ? "node" : "nodes"}
              </span>
              <span className="hp-dim hp-small">
                since <When iso={since} />
              </span>
            </li>
          ))}
        </ul>
      )}
    </QuestionCard>
  );
}

function Updated({ fleet }: { fleet: FleetSummary }) {
  if (!fleet.updated_at) return null;
  return (
    <>
      Last report <When iso={fleet.updated_at} />.
    </>
  );
}
