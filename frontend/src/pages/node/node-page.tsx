import { Stack } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useParams } from "@tanstack/react-router";
import { nodeQuery } from "@/api/nodes";
import { runQuery } from "@/api/runs";
import type { NodeDetail } from "@/api/types";
import { MemoryMap } from "@/components/memory-map/memory-map";
import { memoryBars } from "@/components/memory-map/node-memory";
import { SyntheticBadge } from "@/components/ui/badges";
import { LinkButton } from "@/components/ui/link-button";
import { PageHeader } from "@/components/ui/page-header";
import { QueryView } from "@/components/ui/query-view";
import { QuestionCard } from "@/components/ui/question-card";
import { CardSkeleton, PageSkeleton } from "@/components/ui/skeletons";
import { TextLink } from "@/components/ui/text-link";
import { When } from "@/components/ui/values";
import { formatBytes, formatShare } from "@/lib/units";
import { GeometryCard } from "./geometry-card";
import { HistoryCard } from "./history-card";
import { InventoryCard } from "./inventory-card";
import { LatencyCard } from "./latency-card";
import { nodeHeadline } from "./node-headline";
import { PoolsCard } from "./pools-card";
import { PressureCard } from "./pressure-card";
import { ProcessesCard } from "./processes-card";
import { RowsCard } from "./rows-card";
import { RunsCard } from "./runs-card";
import { ScatterCard } from "./scatter-card";

/** One node: what to do, what its page sizes buy, what its TLB covers, and where its memory is. */
export function NodePage() {
  const { nodeId } = useParams({ from: "/app/nodes/$nodeId" });
  const query = useQuery(nodeQuery(nodeId));
  return (
    <QueryView query={query} skeleton={<PageSkeleton />}>
      {(node) => <NodeView node={node} />}
    </QueryView>
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
        headline={nodeHeadline(node)}
        actions={
          <LinkButton to="/planner" search={{ node: node.id }}>
            Plan this node
          </LinkButton>
        }
      />
      <Stack gap="md">
        <MemoryCard node={node} />
        {node.latest_run_id && <RunCurves runId={node.latest_run_id} node={node} />}
        {node.geometry && <GeometryCard geometry={node.geometry} basePageBytes={base} />}
        <PoolsCard node={node} />
        <HistoryCard nodeId={node.id} />
        <ProcessesCard nodeId={node.id} />
        <RunsCard nodeId={node.id} />
        <InventoryCard node={node} />
      </Stack>
    </>
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
    <QuestionCard title={title} description="To scale, from the newest sample.">
      <MemoryMap bars={memoryBars(node.name, node.sample)} />
    </QuestionCard>
  );
}

function RunCurves({ runId, node }: { runId: string; node: NodeDetail }) {
  const query = useQuery(runQuery(runId));
  const base = node.inventory.base_page_bytes;
  return (
    <QueryView query={query} skeleton={<CardSkeleton height={340} />}>
      {(run) => (
        <>
          <LatencyCard run={run} levels={node.geometry?.levels ?? []} basePageBytes={base} />
          <PressureCard run={run} basePageBytes={base} />
          <RowsCard measurements={run.rows?.measurements ?? []} />
          <ScatterCard run={run} />
        </>
      )}
    </QueryView>
  );
}
