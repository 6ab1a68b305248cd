import "@/theme/mantine-pages.css";
import { Button, Group, Select, TextInput } from "@mantine/core";
import { useDebouncedCallback } from "@mantine/hooks";
import { useQuery } from "@tanstack/react-query";
import { useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { useState } from "react";
import {
  fleetPlanQuery,
  fleetSummaryQuery,
  hasEnded,
  useCancelFleetPlan,
  useFleetPlanProgress,
} from "@/api/fleet";
import { csvPath } from "@/api/nodes";
import { useMayPlan } from "@/api/session";
import type { FleetPlanDetail, FleetPlanSummary } from "@/api/types";
import { StateBadge } from "@/components/ui/badges";
import { CsvButton } from "@/components/ui/csv-button";
import { FoldCard } from "@/components/ui/fold-card";
import { SearchIcon } from "@/components/ui/icons";
import { LinkButton } from "@/components/ui/link-button";
import { PageHeader } from "@/components/ui/page-header";
import { QuestionCard } from "@/components/ui/question-card";
import { PageSkeleton } from "@/components/ui/skeletons";
import { Stat, Stats } from "@/components/ui/stat";
import { ErrorState, isMissing, NotThere, StateText } from "@/components/ui/states";
import { TextLink } from "@/components/ui/text-link";
import { Bytes, When } from "@/components/ui/values";
import { formatCount, formatCounted, formatDuration, formatShare } from "@/lib/units";
import { type FleetPlanResultSearch, NAME_CHARACTERS, SEVERITIES } from "@/search";
import { DecisionsCard } from "./decisions-card";
import classes from "./fleet-plan.module.css";
import { fitUnknown, headline, progressWords, STATUS, syntheticWords } from "./fleet-plan-words";
import { GroupsCard } from "./groups-card";
import { PlanNodes } from "./plan-nodes";
import { fromSelector, selectionWords } from "./selection-words";

/** One fleet plan: how far it is while it runs, then what each node needs, exceptions first. */
export function FleetPlanPage() {
  const { jobId } = useParams({ from: "/app/fleet-plans/$jobId" });
  const query = useQuery(fleetPlanQuery(jobId));
  const job = query.data;
  useFleetPlanProgress(jobId, job !== undefined && !hasEnded(job.status));
  const fleet = useQuery({
    ...fleetSummaryQuery(job ? fromSelector(job.selector) : {}),
    enabled: job !== undefined,
  });
  if (isMissing(query.error))
    return (
      <NotThere title="No such fleet plan">
        <LinkButton to="/fleet-plans">All fleet plans</LinkButton>
      </NotThere>
    );
  if (!job)
    return query.isError ? (
      <ErrorState error={query.error} onRetry={() => void query.refetch()} />
    ) : (
      <PageSkeleton />
    );
  return (
    <>
      <PageHeader
        title={job.name}
        crumbs={[
          <TextLink key="plans" to="/fleet-plans">
            Fleet plan
          </TextLink>,
        ]}
        badge={<StateBadge {...STATUS[job.status]} />}
        headline={
          job.summary
            ? `${headline(job.summary)} ${syntheticWords(fleet.isPlaceholderData ? undefined : fleet.data)}`
            : undefined
        }
        actions={
          job.summary && (
            <CsvButton path={`/api/v1/fleet/plans/${job.id}/nodes.csv`} label="CSV of all nodes" />
          )
        }
      />
      {!hasEnded(job.status) && <Progress job={job} />}
      {job.error && (
        <QuestionCard title="The plan failed">
          <StateText>{job.error}</StateText>
        </QuestionCard>
      )}
      {job.status === "cancelled" && (
        <QuestionCard title="The plan was cancelled">
          <StateText>{progressWords(job).text} before that. Nothing of it is kept.</StateText>
        </QuestionCard>
      )}
      {job.summary && <Results job={job} summary={job.summary} />}
    </>
  );
}

function Progress({ job }: { job: FleetPlanDetail }) {
  const mayPlan = useMayPlan();
  const cancel = useCancelFleetPlan(job.id);
  const { share, text } = progressWords(job);
  return (
    <QuestionCard
      title={job.status === "queued" ? "It waits for its turn" : "It is being planned"}
      description={`It plans ${selectionWords(fromSelector(job.selector))}. This page can be left: the plan goes on.`}
    >
      <progress className={classes.progress} value={share} max={1} aria-label="Progress" />
      <Group gap="sm">
        <span role="status">{job.cancel_requested ? "It is being cancelled." : text}</span>
        {mayPlan && (
          <Button
            variant="default"
            size="compact-sm"
            loading={cancel.isPending}
            disabled={job.cancel_requested || cancel.isSuccess}
            onClick={() => cancel.mutate()}
          >
            Cancel
          </Button>
        )}
      </Group>
      {cancel.isError && <ErrorState error={cancel.error} bare />}
    </QuestionCard>
  );
}

/** Whether rows stack: twenty of them are ten screens of a telephone, behind the groups that say the same. */
function isNarrow(): boolean {
  return window.matchMedia("(max-width: 36em)").matches;
}

function Results({ job, summary }: { job: FleetPlanDetail; summary: FleetPlanSummary }) {
  const search = useSearch({ from: "/app/fleet-plans/$jobId" });
  const navigate = useNavigate({ from: "/fleet-plans/$jobId" });
  const set = (change: Partial<FleetPlanResultSearch>) =>
    void navigate({ search: (old) => ({ ...old, ...change }), replace: true });
  return (
    <>
      <Stats>
        <Stat
          label="Do not fit"
          value={formatCount(summary.nodes_not_fitting)}
          note={`not known of ${formatCount(fitUnknown(summary))}`}
        />
        <Stat
          label="With problems"
          value={formatCount(summary.nodes_wrong)}
          note={`${formatCount(summary.nodes_attention)} for attention`}
        />
        <Stat
          label="Reserved by the plans"
          value={<Bytes value={summary.locked_bytes} />}
          note={`${formatShare(summary.locked_bytes / summary.mem_total_bytes)} of memory`}
        />
        <Stat
          label="Lack pages today"
          value={formatCount(summary.nodes_missing_pages)}
          note={`${formatCount(summary.nodes_idle_pages)} ${summary.nodes_idle_pages === 1 ? "has" : "have"} more than planned`}
        />
        <Stat
          label="Planned"
          value={formatCounted(summary.nodes, "node")}
          note={`${formatCounted(summary.plans_computed, "plan")} in ${formatDuration(summary.seconds)}`}
        />
      </Stats>
      <div className={classes.stack}>
        <GroupsCard jobId={job.id} open={search.group} onOpen={set} />
        <DecisionsCard jobId={job.id} nodes={summary.nodes} />
        <FoldCard
          title={`Which nodes need attention? ${formatCount(summary.nodes_wrong + summary.nodes_attention)} of ${formatCount(summary.nodes)}.`}
          open={!isNarrow() || search.severity !== undefined || search.q !== undefined}
        >
          <Group justify="space-between" align="flex-end" mb="sm">
            <StateText>
              What the plan wants beside what each node has now, exceptions first. Planned{" "}
              <When iso={job.finished_at} />.
            </StateText>
            <Filters search={search} jobId={job.id} onChange={set} />
          </Group>
          <PlanNodes
            jobId={job.id}
            search={{ severity: search.severity, q: search.q }}
            onClear={() => set({ severity: undefined, q: undefined })}
          />
        </FoldCard>
      </div>
    </>
  );
}

interface FiltersProps {
  search: FleetPlanResultSearch;
  jobId: string;
  onChange: (change: Partial<FleetPlanResultSearch>) => void;
}

const SEVERITY_WORDS = { wrong: "Wrong", attention: "Attention", fine: "Nothing to do" };

function Filters({ search, jobId, onChange }: FiltersProps) {
  const [text, setText] = useState(search.q ?? "");
  const send = useDebouncedCallback((q: string) => onChange({ q: q.trim() || undefined }), 250);
  return (
    <Group gap="sm" align="flex-end">
      <TextInput
        aria-label="Search by name"
        placeholder="Name"
        leftSection={<SearchIcon />}
        size="sm"
        w={170}
        maxLength={NAME_CHARACTERS}
        value={text}
        onChange={(event) => {
          setText(event.currentTarget.value);
          send(event.currentTarget.value);
        }}
      />
      <Select
        aria-label="Severity"
        placeholder="All"
        clearable
        size="sm"
        w={160}
        data={SEVERITIES.map((value) => ({ value, label: SEVERITY_WORDS[value] }))}
        value={search.severity ?? null}
        onChange={(value) =>
          onChange({ severity: (value ?? undefined) as FleetPlanResultSearch["severity"] })
        }
      />
      <CsvButton
        path={csvPath(`/api/v1/fleet/plans/${jobId}/nodes.csv`, {
          severity: search.severity,
          q: search.q,
        })}
      />
    </Group>
  );
}
