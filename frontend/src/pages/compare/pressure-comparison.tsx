import { Group, SegmentedControl } from "@mantine/core";
import { useState } from "react";
import type { PressurePoint, RunComparison } from "@/api/types";
import type { ChartRow, ChartSeries } from "@/components/charts/chart-types";
import { LineChart } from "@/components/charts/line-chart";
import {
  BETWEEN_AXES,
  footprintsOf,
  formatSaving,
  type PressureBacking,
  pressureBackings,
  pressureRows,
} from "@/components/curves/pressure-series";
import { QuestionCard } from "@/components/ui/question-card";
import { pageSizeColor } from "@/lib/page-size";
import { formatBytes } from "@/lib/units";
import { RUN_MARKERS, runLetter } from "./compare-rows";

/** The points that did not wait, of each run. */
function pointsByRun(comparison: RunComparison): PressurePoint[][] {
  return comparison.pressures.map((pressure) =>
    (pressure?.points ?? []).filter((point) => point.wait_ns === 0 && point.delta_ns !== null),
  );
}

/** The footprints at which at least two runs measured a page size in common; the largest is the last. */
export function comparableFootprints(comparison: RunComparison): number[] {
  const runs = pointsByRun(comparison);
  return footprintsOf(runs.flat()).filter((footprint) => comparedBackings(comparison, footprint).length > 0);
}

/** The page sizes that at least two runs measured over a footprint. */
export function comparedBackings(comparison: RunComparison, footprint: number): PressureBacking[] {
  const runs = pointsByRun(comparison).map((points) =>
    points.filter((point) => point.footprint_bytes === footprint),
  );
  return pressureBackings(runs.flat()).filter(
    ({ backing }) => runs.filter((points) => points.some((point) => point.backing === backing)).length >= 2,
  );
}

/** One line per run and page size, over one footprint. */
export function comparedPressure(
  comparison: RunComparison,
  footprint: number,
  chosen: string | null,
): { rows: ChartRow[]; series: ChartSeries[] } {
  const backings = comparedBackings(comparison, footprint).filter(
    ({ backing }) => chosen === null || backing === chosen,
  );
  const series: ChartSeries[] = [];
  const rows = new Map<number, ChartRow>();
  pointsByRun(comparison).forEach((points, index) => {
    for (const { backing, short, label, kind, pageBytes } of backings) {
      const own = points.filter((point) => point.backing === backing && point.footprint_bytes === footprint);
      if (own.length === 0) continue;
      const key = `${index}:${backing}`;
      series.push({
        key,
        label: `${runLetter(index)} ${label}`,
        short: `${runLetter(index)} ${short}`,
        color: pageSizeColor(pageBytes, kind),
        marker: RUN_MARKERS[index % RUN_MARKERS.length] ?? "circle",
      });
      for (const row of pressureRows(own, "lines", () => key)) {
        const known = rows.get(row.x);
        rows.set(row.x, {
          x: row.x,
          values: { ...known?.values, ...row.values },
          ranges: { ...known?.ranges, ...row.ranges },
        });
      }
    }
  });
  return { series, rows: [...rows.values()].sort((a, b) => a.x - b.x) };
}

/** Names the runs without a point, so that a missing line is never just absent. */
function without(comparison: RunComparison): string {
  const letters = pointsByRun(comparison).flatMap((points, index) =>
    points.length === 0 ? [runLetter(index)] : [],
  );
  if (letters.length === 0) return "";
  return ` ${letters.join(" and ")} did not measure it.`;
}

/** What each run saves when other lines are read in between. */
export function PressureComparison({ comparison }: { comparison: RunComparison }) {
  const footprints = comparableFootprints(comparison);
  const [chosenFootprint, setFootprint] = useState<number | null>(null);
  const [chosenBacking, setBacking] = useState<string | null>(null);
  const footprint = footprints.find((candidate) => candidate === chosenFootprint) ?? footprints.at(-1);
  if (footprint === undefined) return null;
  const backings = comparedBackings(comparison, footprint);
  const backing = backings.find((candidate) => candidate.backing === chosenBacking)?.backing ?? null;
  return (
    <QuestionCard
      title={`What do they save over ${formatBytes(footprint)} while a program reads other data?`}
      description={`ns saved per access against base pages. The colour is the page size, the marker is the run.${without(comparison)}`}
      actions={
        <Group gap={8}>
          {footprints.length > 1 && (
            <SegmentedControl
              size="xs"
              value={String(footprint)}
              onChange={(value) => setFootprint(Number(value))}
              aria-label="Footprint"
              data={footprints.map((value) => ({ value: String(value), label: formatBytes(value) }))}
            />
          )}
          {backings.length > 1 && (
            <SegmentedControl
              size="xs"
              value={backing ?? "all"}
              onChange={(value) => setBacking(value === "all" ? null : value)}
              aria-label="Page size under pressure"
              data={[
                { value: "all", label: "All sizes" },
                ...backings.map(({ backing: value, short }) => ({ value, label: short })),
              ]}
            />
          )}
        </Group>
      }
    >
      <LineChart
        title={`Savings of the compared runs over ${formatBytes(footprint)}`}
        {...comparedPressure(comparison, footprint, backing)}
        xAxis={BETWEEN_AXES.lines}
        valueAxis={{ label: "ns saved per access (mean; band 95 % interval)", format: formatSaving }}
        height={320}
      />
    </QuestionCard>
  );
}
