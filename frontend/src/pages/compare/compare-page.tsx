import { Group, MultiSelect, SegmentedControl, Stack } from "@mantine/core";
import { useInfiniteQuery, useQueries, useQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useState } from "react";
import { nodeRunsQuery, nodesQuery } from "@/api/nodes";
import { runComparisonQuery } from "@/api/runs";
import type { Run, RunComparison } from "@/api/types";
import { LineChart } from "@/components/charts/line-chart";
import { FOOTPRINT_AXIS, NS_AXIS } from "@/components/curves/axes";
import { curveRows, layoutLabel } from "@/components/curves/curve-series";
import { PageHeader } from "@/components/ui/page-header";
import { QueryView } from "@/components/ui/query-view";
import { QuestionCard } from "@/components/ui/question-card";
import { CardSkeleton } from "@/components/ui/skeletons";
import { EmptyState, StateText } from "@/components/ui/states";
import { TextLink } from "@/components/ui/text-link";
import { formatAbsolute } from "@/lib/units";
import { comparableBackings, comparableLayouts, comparedSeries, runLabels, runLetter } from "./compare-rows";
import { GeometryDifferences } from "./geometry-differences";
import { PressureComparison } from "./pressure-comparison";

const MOST_RUNS = 6;
const MOST_NODES = 40;

/** Runs side by side: of one node over time, or of different nodes. */
export function ComparePage() {
  const { runs: chosen = [] } = useSearch({ from: "/app/compare" });
  const navigate = useNavigate({ from: "/compare" });
  const runs = useAllRuns();
  const comparison = useQuery(runComparisonQuery(chosen));
  const options = runs.items.map((run) => ({
    value: run.id,
    label: `${run.node_name}, ${formatAbsolute(run.started_at)}, ${run.profile ?? run.command}${runs.synthetic.has(run.node_id) ? ", synthetic" : ""}`,
  }));
  return (
    <>
      <PageHeader
        title="Compare"
        headline="Put benchmark runs side by side: one node over time, or node against node."
      />
      {!runs.isPending && options.length < 2 ? (
        <EmptyState title="There is nothing to compare yet">
          <StateText>
            A comparison needs two benchmark runs. {options.length === 1 ? "There is one so far. " : ""}
            Measure a node again, or <TextLink to="/nodes">add another node</TextLink>.
          </StateText>
        </EmptyState>
      ) : (
        <Stack gap="md">
          <MultiSelect
            label="Runs"
            description={`Two to ${MOST_RUNS}`}
            data={options}
            value={[...chosen]}
            maxValues={MOST_RUNS}
            searchable
            onChange={(values) =>
              void navigate({ search: (old) => ({ ...old, runs: values }), replace: true })
            }
            maw={860}
          />
          {chosen.length < 2 ? (
            <EmptyState title="Choose at least two runs">
              <StateText>Their curves and their TLB geometry are then drawn together.</StateText>
            </EmptyState>
          ) : (
            <QueryView query={comparison} skeleton={<CardSkeleton height={340} />}>
              {(data) => <Comparison comparison={data} synthetic={runs.synthetic} />}
            </QueryView>
          )}
        </Stack>
      )}
    </>
  );
}

/** The runs of the nodes that have any. There is no list of all runs, so each node is asked. */
function useAllRuns(): { items: Run[]; synthetic: ReadonlySet<string>; isPending: boolean } {
  const nodes = useInfiniteQuery(nodesQuery(""));
  const measured = (nodes.data?.pages.flatMap((page) => page.items) ?? [])
    .filter((node) => node.latest_run_id !== null)
    .slice(0, MOST_NODES);
  const queries = useQueries({ queries: measured.map((node) => nodeRunsQuery(node.id)) });
  return {
    items: queries.flatMap((query) => query.data?.items ?? []),
    synthetic: new Set(measured.filter((node) => node.synthetic).map((node) => node.id)),
    isPending: nodes.isPending || queries.some((query) => query.isPending),
  };
}

/** "A (db-7 11-20 14:04)": the letter of the chart with the run's name. */
function namedRuns(comparison: RunComparison): string[] {
  return runLabels(comparison.runs).map((label, index) => `${runLetter(index)} (${label})`);
}

interface ComparisonProps {
  comparison: RunComparison;
  /** Nodes whose reports were made by hand. */
  synthetic: ReadonlySet<string>;
}

/** "B is synthetic." where a run was made by hand. */
function syntheticRuns({ comparison, synthetic }: ComparisonProps): string {
  const letters = comparison.runs.flatMap((run, index) =>
    synthetic.has(run.node_id) ? [runLetter(index)] : [],
  );
  if (letters.length === 0) return "";
  return ` ${letters.join(" and ")} ${letters.length === 1 ? "is" : "are"} synthetic.`;
}

function Comparison({ comparison, synthetic }: ComparisonProps) {
  const layouts = comparableLayouts(comparison);
  const [chosenLayout, setLayout] = useState<string | null>(null);
  const layout = chosenLayout ?? layouts[0] ?? "";
  const backings = comparableBackings(comparison, layout);
  const [chosenBacking, setBacking] = useState("all");
  const backing = backings.includes(chosenBacking) ? chosenBacking : null;
  const compared = comparedSeries(comparison, layout, backing);
  return (
    <>
      <QuestionCard
        title={`How do ${namedRuns(comparison).join(" and ")} differ?`}
        description={`The colour is the page size, the marker is the run.${syntheticRuns({ comparison, synthetic })}`}
        actions={
          <Group gap={8}>
            {layouts.length > 1 && (
              <SegmentedControl
                size="xs"
                value={layout}
                onChange={setLayout}
                aria-label="Access pattern"
                data={layouts.map((value) => ({ value, label: layoutLabel(value) }))}
              />
            )}
            {backings.length > 1 && (
              <SegmentedControl
                size="xs"
                value={backing ?? "all"}
                onChange={setBacking}
                aria-label="Page size"
                data={[
                  { value: "all", label: "All sizes" },
                  ...backings.map((value) => ({ value, label: value })),
                ]}
              />
            )}
          </Group>
        }
      >
        <LineChart
          title="Latency of the compared runs"
          rows={curveRows(compared.map(({ series, curve }) => ({ key: series.key, curve })))}
          series={compared.map(({ series }) => series)}
          xAxis={FOOTPRINT_AXIS}
          valueAxis={NS_AXIS}
          baseline={compared[0]?.series.key}
          height={380}
          empty="These runs have no latency curves in common."
        />
      </QuestionCard>
      <PressureComparison comparison={comparison} />
      <GeometryDifferences comparison={comparison} />
    </>
  );
}
