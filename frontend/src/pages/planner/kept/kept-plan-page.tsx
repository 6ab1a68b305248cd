import "@/theme/mantine-pages.css";
import { Button, Group } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useNavigate, useParams } from "@tanstack/react-router";
import { nodeQuery } from "@/api/nodes";
import { savedPlanQuery, useDeletePlan } from "@/api/plans";
import { useMayPlan } from "@/api/session";
import type { SavedPlan } from "@/api/types";
import { PlanButtons } from "@/components/plans/plan-buttons";
import { PlanStateBadge } from "@/components/plans/plan-state-badge";
import { LinkButton } from "@/components/ui/link-button";
import { PageHeader } from "@/components/ui/page-header";
import { QueryView } from "@/components/ui/query-view";
import { PageSkeleton } from "@/components/ui/skeletons";
import { ErrorState, isMissing, NotThere } from "@/components/ui/states";
import { TextLink } from "@/components/ui/text-link";
import { FilesCard } from "./files-card";
import classes from "./kept-plan.module.css";
import { Sheet } from "./sheet";
import { WhereItStands } from "./where-it-stands";

/** One kept plan: the sheet that is signed, and what was decided about it. */
export function KeptPlanPage() {
  const { planId } = useParams({ from: "/app/plans/$planId" });
  const query = useQuery(savedPlanQuery(planId));
  if (isMissing(query.error))
    return (
      <NotThere title="No such plan">
        <LinkButton to="/plans">All plans</LinkButton>
      </NotThere>
    );
  return (
    <QueryView query={query} skeleton={<PageSkeleton />}>
      {(kept) => <KeptPlan kept={kept} />}
    </QueryView>
  );
}

function KeptPlan({ kept: stored }: { kept: SavedPlan }) {
  const node = useQuery({
    ...nodeQuery(stored.node_id ?? ""),
    enabled: stored.node_id !== null,
    refetchInterval: false,
  });
  // What was kept names its node for ever; nothing leads to one that was removed.
  const kept = isMissing(node.error) ? { ...stored, node_id: null } : stored;
  const name = kept.short_digest ?? "kept before digests";
  return (
    <>
      <div className={classes.screen}>
        <PageHeader
          title={`Plan ${name}`}
          badge={<PlanStateBadge plan={kept} />}
          crumbs={[
            <TextLink key="plans" to="/plans">
              Plans
            </TextLink>,
            kept.node_id ? (
              <TextLink key="node" to="/nodes/$nodeId" params={{ nodeId: kept.node_id }}>
                {kept.node_name}
              </TextLink>
            ) : (
              <span key="node">{kept.node_name}</span>
            ),
          ]}
          actions={<Actions kept={kept} />}
        />
        <WhereItStands kept={kept} />
      </div>
      <Sheet kept={kept} />
      <div className={classes.screen}>
        <FilesCard kept={kept} />
      </div>
    </>
  );
}

function Actions({ kept }: { kept: SavedPlan }) {
  const mayPlan = useMayPlan();
  const remove = useDeletePlan();
  const navigate = useNavigate();
  const url = `/api/v1/plans/${kept.id}`;
  return (
    <Group gap={6} justify="flex-end">
      {mayPlan && kept.state === "draft" && (
        <Button
          variant="default"
          size="sm"
          loading={remove.isPending}
          onClick={() => remove.mutate(kept, { onSuccess: () => void navigate({ to: "/plans" }) })}
        >
          Delete draft
        </Button>
      )}
      <Button variant="default" size="sm" onClick={() => window.print()}>
        Print
      </Button>
      <Button component="a" variant="default" size="sm" href={`${url}/document.json`} download>
        JSON
      </Button>
      {kept.artifacts.length > 0 && (
        <Button component="a" variant="default" size="sm" href={`${url}/artifacts.zip`} download>
          Files
        </Button>
      )}
      <PlanButtons plan={kept} />
      {remove.isError && <ErrorState error={remove.error} bare />}
    </Group>
  );
}
