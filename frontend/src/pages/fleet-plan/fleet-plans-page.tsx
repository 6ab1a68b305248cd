import "@/theme/mantine-pages.css";
import { Button, Group, Select, TextInput } from "@mantine/core";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useState } from "react";
import { fleetPlansQuery, fleetSummaryQuery, useStartFleetPlan } from "@/api/fleet";
import { asScenarioDocument } from "@/api/plans";
import { scenarioQuery, scenariosQuery } from "@/api/scenarios";
import { useMayPlan } from "@/api/session";
import type { FleetPlanJob } from "@/api/types";
import { StateBadge } from "@/components/ui/badges";
import { LinkButton } from "@/components/ui/link-button";
import { PageHeader } from "@/components/ui/page-header";
import { QueryView } from "@/components/ui/query-view";
import { QuestionCard } from "@/components/ui/question-card";
import { TableSkeleton } from "@/components/ui/skeletons";
import { ErrorState, StateText } from "@/components/ui/states";
import { Table } from "@/components/ui/table";
import { TableScroll } from "@/components/ui/table-scroll";
import { TextLink } from "@/components/ui/text-link";
import { When } from "@/components/ui/values";
import { formatCount, formatCounted } from "@/lib/units";
import { NAME_CHARACTERS, nodeSelection } from "@/search";
import classes from "./fleet-plan.module.css";
import { progressWords, STATUS, syntheticWords } from "./fleet-plan-words";
import { fromSelector, selectionWords, toSelector, withoutNode } from "./selection-words";

const AS_IT_RUNS = "Each node as it runs";

/** Many nodes at once: begin a plan, and find the ones that were begun. */
export function FleetPlansPage() {
  const plans = useQuery(fleetPlansQuery());
  const mayPlan = useMayPlan();
  return (
    <>
      <PageHeader
        title="Fleet plan"
        headline="What many nodes need, each as it runs or all for one scenario. A plan goes on when this page is left."
      />
      <div className={classes.stack}>
        {mayPlan ? <StartCard /> : <StateText>Starting a fleet plan needs the role planner.</StateText>}
        <QuestionCard title="Which plans are there?">
          <QueryView query={plans} skeleton={<TableSkeleton rows={3} />}>
            {({ items }) =>
              items.length === 0 ? <StateText>None yet.</StateText> : <PlansTable jobs={items} />
            }
          </QueryView>
        </QuestionCard>
      </div>
    </>
  );
}

function StartCard() {
  const search = useSearch({ from: "/app/fleet-plans" });
  const navigate = useNavigate();
  const queries = useQueryClient();
  const selection = nodeSelection({ ...search });
  const fleet = useQuery(fleetSummaryQuery(selection));
  const scenarios = useQuery(scenariosQuery());
  const start = useStartFleetPlan();
  const [name, setName] = useState("");
  const [problem, setProblem] = useState<unknown>(null);
  const [isReading, setReading] = useState(false);
  const chosen = scenarios.data?.items.find(({ id }) => id === search.saved);
  const nodes = fleet.isPlaceholderData ? undefined : fleet.data?.nodes;
  const isSelected = search.all === true || Object.values(selection).some((value) => value !== undefined);
  const begin = async () => {
    setProblem(null);
    setReading(true);
    try {
      // Fresh: another reader may have changed it since the list was loaded.
      const fresh =
        search.saved === undefined
          ? null
          : await queries.fetchQuery({ ...scenarioQuery(search.saved), staleTime: 0 });
      const job = await start.mutateAsync({
        name: name.trim() || (fresh?.name ?? AS_IT_RUNS),
        selector: toSelector(selection),
        ...(fresh ? { scenario: asScenarioDocument(withoutNode(fresh.scenario)) } : {}),
      });
      void navigate({ to: "/fleet-plans/$jobId", params: { jobId: job.id } });
    } catch (error) {
      setProblem(error);
    } finally {
      setReading(false);
    }
  };
  return (
    <QuestionCard
      title={
        !isSelected
          ? "Which nodes should be planned?"
          : nodes === undefined
            ? "What do the nodes need?"
            : `What ${nodes === 1 ? "does" : "do"} ${formatCounted(nodes, "node")} need?`
      }
      description={
        isSelected ? (
          <>
            It plans {selectionWords(selection)}.{" "}
            {syntheticWords(fleet.isPlaceholderData ? undefined : fleet.data)}{" "}
            <TextLink to="/nodes" search={selection}>
              Choose other nodes
            </TextLink>
          </>
        ) : (
          "Filter them on the page Nodes, by machine type, label or finding; the selection comes back here."
        )
      }
    >
      {fleet.isError && <ErrorState error={fleet.error} onRetry={() => void fleet.refetch()} bare />}
      {scenarios.isError && (
        <ErrorState error={scenarios.error} onRetry={() => void scenarios.refetch()} bare />
      )}
      {!isSelected && (
        <Group gap="sm">
          <LinkButton to="/nodes">Choose nodes</LinkButton>
          <LinkButton to="/fleet-plans" search={{ ...search, all: true }} variant="default">
            {nodes === 1
              ? "Take the node"
              : `Take all ${nodes === undefined ? "nodes" : formatCounted(nodes, "node")}`}
          </LinkButton>
        </Group>
      )}
      {isSelected && (
        <form
          className={classes.form}
          onSubmit={(event) => {
            event.preventDefault();
            void begin();
          }}
        >
          <Select
            label="What they run"
            placeholder="Each node as it runs"
            clearable
            searchable
            data={(scenarios.data?.items ?? []).map((scenario) => ({
              value: scenario.id,
              label: scenario.name,
            }))}
            value={search.saved ?? null}
            onChange={(saved) =>
              void navigate({
                to: "/fleet-plans",
                search: { ...search, saved: saved ?? undefined },
                replace: true,
              })
            }
          />
          <TextInput
            label="Name of the plan"
            placeholder={chosen?.name ?? AS_IT_RUNS}
            maxLength={NAME_CHARACTERS}
            value={name}
            onChange={(event) => setName(event.currentTarget.value)}
          />
          <Button
            type="submit"
            loading={isReading || start.isPending}
            disabled={nodes === 0}
            className={classes.submit}
          >
            Plan {nodes === undefined ? "them" : formatCounted(nodes, "node")}
          </Button>
        </form>
      )}
      {problem !== null && <ErrorState error={problem} bare />}
    </QuestionCard>
  );
}

function PlansTable({ jobs }: { jobs: readonly FleetPlanJob[] }) {
  return (
    <TableScroll label="Fleet plans" minWidth={560}>
      <Table verticalSpacing={7}>
        <Table.Thead>
          <Table.Tr>
            <Table.Th>Plan</Table.Th>
            <Table.Th>State</Table.Th>
            <Table.Th className="hp-num">Nodes</Table.Th>
            <Table.Th className="hp-num">Do not fit</Table.Th>
            <Table.Th>By</Table.Th>
            <Table.Th className="hp-num">Started</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {jobs.map((job) => (
            <Table.Tr key={job.id}>
              <Table.Th scope="row">
                <TextLink
                  to="/fleet-plans/$jobId"
                  params={{ jobId: job.id }}
                  title={job.name}
                  className="hp-name"
                >
                  {job.name}
                </TextLink>
                <div className="hp-dim hp-small">{selectionWords(fromSelector(job.selector))}</div>
              </Table.Th>
              <Table.Td>
                <StateBadge {...STATUS[job.status]} />
                {job.status === "running" && <div className="hp-small">{progressWords(job).text}</div>}
              </Table.Td>
              <Table.Td className="hp-num">{formatCount(job.nodes_total)}</Table.Td>
              <Table.Td className="hp-num">
                {job.summary ? formatCount(job.summary.nodes_not_fitting) : ""}
              </Table.Td>
              <Table.Td>{job.created_by}</Table.Td>
              <Table.Td className="hp-num">
                <When iso={job.created_at} />
              </Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </TableScroll>
  );
}
