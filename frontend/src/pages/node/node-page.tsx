import "@/theme/mantine-pages.css";
import { Group, Stack } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useParams } from "@tanstack/react-router";
import { nodeQuery } from "@/api/nodes";
import { asApiError } from "@/api/problem";
import { runQuery } from "@/api/runs";
import type { NodeDetail } from "@/api/types";
import { MemoryMap } from "@/components/memory-map/memory-map";
import { memoryBars } from "@/components/memory-map/node-memory";
import { PlansTable } from "@/components/plans/plans-table";
import { SyntheticBadge } from "@/components/ui/badges";
import { AttentionIcon } from "@/components/ui/icons";
import { LinkButton } from "@/components/ui/link-button";
import { PageHeader } from "@/components/ui/page-header";
import { QueryView } from "@/components/ui/query-view";
import { QuestionCard } from "@/components/ui/question-card";
import { CardSkeleton, PageSkeleton } from "@/components/ui/skeletons";
import { TextLink } from "@/components/ui/text-link";
import { When } from "@/components/ui/values";
import { WithTerms } from "@/components/ui/with-terms";
import { formatBytes, formatShare } from "@/lib/units";
import { GeometryCard } from "./machine/geometry-card";
import { LatencyCard } from "./machine/latency-card";
import { NodeFindingsCard } from "./node-findings-card";
import { nodeHeadline } from "./node-headline";
import classes from "./node-page.module.css";
import { NodeTabs } from "./node-tabs";
import { RemoveNode } from "./remove-node";

/** One node: what to do, what its page sizes buy, what its TLB covers, and where its memory is. */
export function NodePage() {
  const { nodeId } = useParams({ from: "/app/nodes/$nodeId" });
  const query = useQuery(nodeQuery(nodeId));
  const status = query.isError ? asApiError(query.error).status : 0;
  if (status === 404 || status === 422) return <NoSuchNode was={query.data?.name} />;
  return (
    <QueryView query={query} skeleton={<PageSkeleton />}>
      {(node) => <NodeView node={node} />}
    </QueryView>
  );
}

/** The address names no node; while the page was open, somebody may have deleted it. */
function NoSuchNode({ was }: { was: string | undefined }) {
  return (
    <PageHeader
      title={was ?? "No such node"}
      crumbs={[
        <TextLink key="nodes" to="/nodes">
          Nodes
        </TextLink>,
      ]}
      headline={
        was
          ? "This node was deleted, with all that was stored of it. If its agent still runs, its next report makes it anew."
          : "There is no node with this address. It may have been deleted."
      }
      actions={<LinkButton to="/nodes">All nodes</LinkButton>}
    />
  );
}

function NodeView({ node }: { node: NodeDetail }) {
  const base = node.inventory.base_page_bytes;
  return (
    <>
      <PageHeader
        title={node.name}
        badge={node.synthetic && <SyntheticBadge />}
        crumbs={[
          <TextLink key="nodes" to="/nodes">
            Nodes
          </TextLink>,
          <span key="machine">
            {node.inventory.cpu?.brand ?? node.architecture}, last report <When iso={node.last_report_at} />
          </span>,
        ]}
        headline={<WithTerms text={nodeHeadline(node)} />}
        actions={
          <Group gap="xs" wrap="nowrap">
            <RemoveNode node={node} />
            <LinkButton to="/planner" search={{ node: node.id }}>
              Plan this node
            </LinkButton>
          </Group>
        }
      />
      <Stack gap="md">
        {node.stale && <StaleNode lastReportAt={node.last_report_at} />}
        <NodeFindingsCard node={node} />
        <PlansOfNode node={node} />
        <MemoryCard node={node} />
        {node.geometry && <GeometryCard geometry={node.geometry} basePageBytes={base} />}
        {node.latest_run_id && <Latency runId={node.latest_run_id} node={node} />}
        <NodeTabs node={node} />
      </Stack>
    </>
  );
}

/** What was kept for this node, and what it is meant to follow. */
function PlansOfNode({ node }: { node: NodeDetail }) {
  const inForce = node.plan_in_force;
  const title = inForce?.short_digest
    ? `The node is meant to follow plan ${inForce.short_digest}.`
    : inForce
      ? "The node is meant to have pools that were set by hand."
      : "No plan is in force here.";
  return (
    <QuestionCard title={title}>
      <PlansTable nodeId={node.id} none="No plan is kept for this node yet." />
    </QuestionCard>
  );
}

/** Old data must not look like new data. */
function StaleNode({ lastReportAt }: { lastReportAt: string }) {
  return (
    <div className={classes.stale} role="note">
      <AttentionIcon />
      <span>
        This node stopped reporting: everything below is as of <When iso={lastReportAt} />.
      </span>
    </div>
  );
}

function MemoryCard({ node }: { node: NodeDetail }) {
  const { memory } = node.sample;
  const available = memory.mem_available_bytes;
  const title =
    available === null
      ? "Where is the memory?"
      : `${formatBytes(available)} of ${formatBytes(memory.mem_total_bytes)} is available (${formatShare(available / memory.mem_total_bytes)}).`;
  return (
    <QuestionCard
      title={title}
      description={
        <>
          To scale, as of <When iso={node.sample.taken_at} />.
        </>
      }
    >
      <MemoryMap bars={memoryBars(node.name, node.sample)} />
    </QuestionCard>
  );
}

function Latency({ runId, node }: { runId: string; node: NodeDetail }) {
  const query = useQuery(runQuery(runId));
  return (
    <QueryView query={query} skeleton={<CardSkeleton height={340} />}>
      {(run) => (
        <LatencyCard
          run={run}
          levels={node.geometry?.levels ?? []}
          basePageBytes={node.inventory.base_page_bytes}
        />
      )}
    </QueryView>
  );
}
