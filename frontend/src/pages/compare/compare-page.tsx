import "@/theme/mantine-pages.css";
import { Group, SegmentedControl, Stack } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useState } from "react";
import { runComparisonQuery, runsQuery } from "@/api/runs";
import type { RunComparison } from "@/api/types";
import { LineChart } from "@/components/charts/line-chart";
import { FOOTPRINT_AXIS, NS_AXIS } from "@/components/curves/axes";
import { curveRows, layoutLabel } from "@/components/curves/curve-series";
import { CsvButton } from "@/components/ui/csv-button";
import { PageHeader } from "@/components/ui/page-header";
import { QueryView } from "@/components/ui/query-view";
import { QuestionCard } from "@/components/ui/question-card";
import { CardSkeleton } from "@/components/ui/skeletons";
import { EmptyState, StateText } from "@/components/ui/states";
import { TextLink } from "@/components/ui/text-link";
import { comparableBackings, comparableLayouts, comparedSeries, runLabels, runLetter } from "./compare-rows";
import { GeometryDifferences } from "./geometry-differences";
import { PressureComparison } from "./pressure-comparison";
import { RatioCard } from "./ratio-card";
import { RunPicker } from "./run-picker";
import { FleetWinsCard, RunWinsCard } from "./wins-card";

const MOST_RUNS = 6;

/** Runs side by side, of one node over time or of different nodes: who wins, by how much, and how sure. */
export function ComparePage() {
  const { runs: chosen = [] } = useSearch({ from: "/app/compare" });
  const navigate = useNavigate({ from: "/compare" });
  const comparison = useQuery(runComparisonQuery(chosen));
  // Nothing to choose from is something else than a list that failed, which the picker says.
  const offered = useQuery(runsQuery(""));
  const few = offered.data !== undefined && offered.data.items.length < 2 && chosen.length < 2;
  return (
    <>
      <PageHeader
        title="Compare"
        headline="Which page size wins, and which machine? Put benchmark runs side by side: one node over time, or node against node."
        actions={!few && <CsvButton path="/api/v1/runs.csv" label="All runs as CSV" />}
      />
      {few ? (
        <EmptyState title="There is nothing to compare yet">
          <StateText>
            A comparison needs two benchmark runs.{" "}
            {offered.data.items.length === 1 ? "There is one so far. " : ""}
            Measure a node again, or <TextLink to="/nodes">add another node</TextLink>.
          </StateText>
        </EmptyState>
      ) : (
        <Stack gap="md">
          <RunPicker
            chosen={chosen}
            known={comparison.data?.runs ?? []}
            most={MOST_RUNS}
            onChange={(values) =>
              void navigate({ search: (old) => ({ ...old, runs: values }), replace: true })
            }
          />
          {chosen.length < 2 ? (
            <>
              <EmptyState title="Choose at least two runs">
                <StateText>Who wins, their curves and their TLB geometry are then drawn together.</StateText>
              </EmptyState>
              <FleetWinsCard />
            </>
          ) : (
            <QueryView query={comparison} skeleton={<CardSkeleton height={340} />}>
              {(data) => <Comparison comparison={data} />}
            </QueryView>
          )}
        </Stack>
      )}
    </>
  );
}

/** "A (db-7 11-20 14:04)": the letter of the chart with the run's name. */
function namedRuns(comparison: RunComparison): string[] {
  return runLabels(comparison.runs).map((label, index) => `${runLetter(index)} (${label})`);
}

/** "B is synthetic." where a run was made by hand. */
function syntheticRuns(comparison: RunComparison): string {
  const letters = comparison.runs.flatMap((run, index) => (run.synthetic ? [runLetter(index)] : []));
  if (letters.length === 0) return "";
  return ` ${letters.join(" and ")} ${letters.length === 1 ? "is" : "are"} synthetic.`;
}

function Comparison({ comparison }: { comparison: RunComparison }) {
  const layouts = comparableLayouts(comparison);
  const [chosenLayout, setLayout] = useState<string | null>(null);
  const layout = chosenLayout ?? layouts[0] ?? "";
  const backings = comparableBackings(comparison, layout);
  const [chosenBacking, setBacking] = useState("all");
  const backing = backings.includes(chosenBacking) ? chosenBacking : null;
  const compared = comparedSeries(comparison, layout, backing);
  return (
    <>
      <RatioCard comparison={comparison} layout={layout} />
      <RunWinsCard runs={comparison.runs} />
      <QuestionCard
        title={`How do ${namedRuns(comparison).join(" and ")} differ?`}
        description={`The colour is the page size, the marker is the run.${syntheticRuns(comparison)}`}
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
