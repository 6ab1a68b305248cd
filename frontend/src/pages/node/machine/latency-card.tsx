import { SegmentedControl } from "@mantine/core";
import { useState } from "react";
import type { RunDetail, TlbLevel } from "@/api/types";
import { LineChart } from "@/components/charts/line-chart";
import { FOOTPRINT_AXIS, NS_AXIS } from "@/components/curves/axes";
import {
  curveRows,
  curveSeries,
  layoutLabel,
  measuredCurves,
  missingCurves,
  reachReferences,
} from "@/components/curves/curve-series";
import { MissingCurves } from "@/components/curves/missing-curves";
import { QuestionCard } from "@/components/ui/question-card";
import { curvesOfLayout, latencyFinding, layoutsOf } from "./latency-summary";

interface LatencyCardProps {
  run: RunDetail;
  levels: readonly TlbLevel[];
  basePageBytes: number;
}

/** Latency over footprint, one line per page size. */
export function LatencyCard({ run, levels, basePageBytes }: LatencyCardProps) {
  const layouts = layoutsOf(run.curves);
  const [chosen, setChosen] = useState<string | null>(null);
  const layout = chosen ?? layouts[0] ?? "";
  const curves = curvesOfLayout(run.curves, layout);
  const keyed = measuredCurves(curves).map((curve, index) => ({ key: `${index}`, curve }));
  const series = keyed.map(({ key, curve }) => curveSeries(curve, key));
  const baseline = series[0]?.marker === "circle" ? series[0].key : undefined;
  return (
    <QuestionCard
      title={latencyFinding(curves, run.paired_deltas)}
      description="Time of one dependent read as the memory it is spread over grows. The lower line is the better page size."
      actions={
        layouts.length > 1 && (
          <SegmentedControl
            size="xs"
            value={layout}
            onChange={setChosen}
            aria-label="Access pattern"
            data={layouts.map((value) => ({ value, label: layoutLabel(value) }))}
          />
        )
      }
    >
      <LineChart
        title={`Latency by page size, ${layoutLabel(layout).toLowerCase()}`}
        rows={curveRows(keyed)}
        series={series}
        xAxis={FOOTPRINT_AXIS}
        valueAxis={NS_AXIS}
        references={reachReferences(levels, basePageBytes)}
        baseline={baseline}
        empty="This run has no latency curves of this pattern."
      />
      <MissingCurves curves={missingCurves(curves)} />
    </QuestionCard>
  );
}
