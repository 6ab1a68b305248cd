import { Stack } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useSearch } from "@tanstack/react-router";
import { lazy, Suspense } from "react";
import { fleetSummaryQuery } from "@/api/fleet";
import { loadPart } from "@/api/load-part";
import type { FleetSummary } from "@/api/types";
import { MemoryMap } from "@/components/memory-map/memory-map";
import { LinkButton } from "@/components/ui/link-button";
import { PageHeader } from "@/components/ui/page-header";
import { QuestionCard } from "@/components/ui/question-card";
import { CardSkeleton, PageSkeleton } from "@/components/ui/skeletons";
import { Stat, Stats } from "@/components/ui/stat";
import { ErrorState } from "@/components/ui/states";
import { Term, TermMark } from "@/components/ui/term";
import { TextLink } from "@/components/ui/text-link";
import { Bytes } from "@/components/ui/values";
import { formatCount, formatCounted, formatShare } from "@/lib/units";
import type { NodeSelection } from "@/search";
import { ChangesCard } from "./changes-card";
import { fleetHeadline, fleetParts } from "./fleet-summary";
import classes from "./overview-page.module.css";
import { ProblemsCard } from "./problems-card";

// Far down, and a table is more than the rest of the page.
const MachinesCard = lazy(() => loadPart(() => import("./machines-card")));

// Seen once, on the first day.
const FirstVisit = lazy(() => loadPart(() => import("@/components/connect/first-visit")));

const REAL = { synthetic: false } as const;

/** The whole fleet at a glance, from figures of the server: never from the first page of a list. */
export function OverviewPage() {
  const everything = useQuery(fleetSummaryQuery());
  const isMixed =
    everything.data !== undefined &&
    everything.data.nodes_synthetic > 0 &&
    everything.data.nodes_synthetic < everything.data.nodes;
  // Beside real machines, made-up ones are counted apart and sum to nothing.
  const real = useQuery({ ...fleetSummaryQuery(REAL), enabled: isMixed });
  const includes = useSearch({ from: "/app/" }).synthetic === true;
  const isApart = isMixed && !includes;
  const query = isApart ? real : everything;
  const scope = isApart ? REAL : {};
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
        <PageHeader title="Overview" headline="No node is known yet. There are three ways to begin." />
        <Suspense fallback={<CardSkeleton height={300} />}>
          <FirstVisit />
        </Suspense>
      </>
    );
  }
  return (
    <>
      <PageHeader
        title="Overview"
        headline={
          <>
            {fleetHeadline(fleet)}{" "}
            <Synthetic count={everything.data?.nodes_synthetic ?? 0} isMixed={isMixed} isApart={isApart} />
          </>
        }
        actions={<LinkButton to="/nodes">Choose a node to plan</LinkButton>}
      />
      <FleetStats fleet={fleet} scope={scope} />
      <Stack gap="md">
        <QuestionCard
          title="How is the fleet's memory used?"
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
        <div className={classes.pair}>
          <ProblemsCard fleet={fleet} scope={scope} />
          <ChangesCard scope={scope} />
        </div>
        <Suspense fallback={<CardSkeleton height={300} />}>
          <MachinesCard parts={fleet.parts} scope={scope} />
        </Suspense>
      </Stack>
    </>
  );
}

/** How many nodes are made up, and whether the figures count them. */
function Synthetic({ count, isMixed, isApart }: { count: number; isMixed: boolean; isApart: boolean }) {
  if (count === 0) return null;
  const words = formatCounted(count, "synthetic node");
  return (
    <>
      {isApart ? (
        <>
          <TextLink to="/nodes" search={{ synthetic: true }}>
            {words}
          </TextLink>{" "}
          {count === 1 ? "is" : "are"} not counted;{" "}
          <TextLink to="/" search={{ synthetic: true }}>
            include {count === 1 ? "it" : "them"}
          </TextLink>
          .
        </>
      ) : isMixed ? (
        <>
          {words} {count === 1 ? "is" : "are"} among them;{" "}
          <TextLink to="/" search={{}}>
            leave {count === 1 ? "it" : "them"} out
          </TextLink>
          .
        </>
      ) : (
        `${count === 1 ? "It is synthetic: it describes" : "All of them are synthetic: they describe"} no real machine.`
      )}
    </>
  );
}

function FleetStats({ fleet, scope }: { fleet: FleetSummary; scope: NodeSelection }) {
  const { memory } = fleet;
  const withPlan = fleet.nodes - (fleet.plan_states.none ?? 0);
  return (
    <Stats>
      <Stat
        label="Nodes"
        value={formatCount(fleet.nodes)}
        note={
          fleet.nodes_stale > 0 ? (
            <TextLink to="/nodes" search={{ ...scope, stale: true }}>
              {formatCount(fleet.nodes_stale)} {fleet.nodes_stale === 1 ? "does" : "do"} not report
            </TextLink>
          ) : (
            "all report"
          )
        }
      />
      <Stat label="Memory" value={<Bytes value={memory.mem_total_bytes} />} />
      <Stat
        label={<Term name="huge-page-pool">In huge pages</Term>}
        value={<Bytes value={memory.pool_bytes} />}
        note={`${formatShare(memory.pool_bytes / memory.mem_total_bytes)} of memory`}
      />
      <Stat
        label={<Term name="idle">Idle in pools</Term>}
        value={<Bytes value={memory.pool_idle_bytes} />}
        note={
          memory.pool_bytes > 0
            ? `${formatShare(memory.pool_idle_bytes / memory.pool_bytes)} of the pools`
            : undefined
        }
      />
      <Stat
        label="Measured"
        value={formatShare(fleet.nodes_measured / fleet.nodes)}
        note={
          <>
            {/* Only a measured node tells. */}
            {fleet.nodes_fractured === 0 && (fleet.nodes_measured === 0 ? "fractured: " : "none of them ")}
            <span className="hp-nowrap">
              {fleet.nodes_fractured > 0 ? (
                <TextLink to="/nodes" search={{ ...scope, finding: "fractured_guest" }}>
                  {formatCount(fleet.nodes_fractured)} fractured
                </TextLink>
              ) : fleet.nodes_measured === 0 ? (
                "unknown"
              ) : (
                "fractured"
              )}{" "}
              <TermMark name="effective-page-size" of="fractured" />
            </span>
          </>
        }
      />
      <Stat
        label={<Term name="plan-in-force">Plan in force</Term>}
        value={formatCount(withPlan)}
        note={
          <TextLink to="/nodes" search={{ ...scope, plan_state: "short" }}>
            {formatCount(fleet.plan_states.short ?? 0)} short of it
          </TextLink>
        }
      />
    </Stats>
  );
}
