import type { Run, RunComparison, RunCurve } from "@/api/types";
import type { ChartSeries, MarkerShape } from "@/components/charts/chart-types";
import { byBacking, curveSeries } from "@/components/curves/curve-series";
import { formatAbsolute } from "@/lib/units";

/** A run's name in a comparison: its node, and its moment where a node has several. */
export function runLabels(runs: readonly Run[]): string[] {
  return runs.map((run) => {
    const same = runs.filter((other) => other.node_name === run.node_name);
    return same.length > 1
      ? `${run.node_name} ${formatAbsolute(run.started_at).slice(5, 16)}`
      : run.node_name;
  });
}

/** A short name for a run inside the chart: A, B, C. */
export function runLetter(index: number): string {
  return String.fromCharCode(65 + index);
}

/** A run has the same marker in every chart. */
export const RUN_MARKERS: readonly MarkerShape[] = ["circle", "square", "triangle", "diamond"];
const MOST_SERIES = 20;

interface ComparedSeries {
  series: ChartSeries;
  curve: RunCurve;
}

/** What can be compared: the backings that at least two runs measured, by their label. */
export function comparableBackings(comparison: RunComparison, layout: string): string[] {
  return sorted(comparison.curves)
    .filter((compared) => compared.layout === layout && compared.section === "latency")
    .filter((compared) => compared.curves.filter((curve) => hasPoints(curve)).length >= 2)
    .map((compared) => compared.backing);
}

export function comparableLayouts(comparison: RunComparison): string[] {
  const found = comparison.curves
    .filter((compared) => compared.section === "latency" && compared.x_name === "footprint_bytes")
    .map((compared) => compared.layout)
    .filter((layout) => layout !== null);
  return [...new Set(found)];
}

type Compared = RunComparison["curves"][number];

/** By page size; a curve that one run lacks is known from another. */
function sorted(curves: readonly Compared[]): Compared[] {
  const known = ({ curves: found, backing }: Compared) =>
    found.find((candidate) => candidate !== null) ?? { backing, backing_kind: null, page_bytes: null };
  return [...curves].sort((a, b) => byBacking(known(a), known(b)));
}

function hasPoints(curve: RunCurve | null): curve is RunCurve {
  return curve?.points.some((point) => point.ns_p50 !== null) ?? false;
}

/** One line per run and backing. The hue is the page size's; the marker tells the runs apart. */
export function comparedSeries(
  comparison: RunComparison,
  layout: string,
  backing: string | null,
): ComparedSeries[] {
  const found: ComparedSeries[] = [];
  for (const compared of sorted(comparison.curves)) {
    if (compared.section !== "latency" || compared.layout !== layout) continue;
    if (backing !== null && compared.backing !== backing) continue;
    compared.curves.forEach((curve, index) => {
      if (!hasPoints(curve)) return;
      const series = curveSeries(curve, `${index}:${compared.backing}`, `${runLetter(index)} `);
      found.push({
        curve,
        series: { ...series, marker: RUN_MARKERS[index % RUN_MARKERS.length] ?? "circle" },
      });
    });
  }
  return found.slice(0, MOST_SERIES);
}
