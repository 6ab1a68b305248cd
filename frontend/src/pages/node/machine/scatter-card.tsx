import type { RunCurve, RunDetail } from "@/api/types";
import type { ChartAxis, ChartSeries } from "@/components/charts/chart-types";
import { LineChart } from "@/components/charts/line-chart";
import { NS_AXIS } from "@/components/curves/axes";
import {
  curveBacking,
  curveRows,
  curveSeries,
  measuredCurves,
  missingCurves,
} from "@/components/curves/curve-series";
import { MissingCurves } from "@/components/curves/missing-curves";
import { QuestionCard } from "@/components/ui/question-card";
import { Term } from "@/components/ui/term";
import { formatCount } from "@/lib/units";

const HOT_LINES_AXIS: ChartAxis = { label: "Hot lines (log2)", scale: "log2", format: formatCount };

/** Few hot lines over a wide range: from how many on large TLB entries run out before small ones. */
export function ScatterCard({ run }: { run: RunDetail }) {
  const curves = run.curves.filter((curve) => curve.section === "scatter");
  const keyed = measuredCurves(curves).map((curve, index) => ({ key: `${index}`, curve }));
  if (keyed.length === 0) return null;
  const series = keyed.map(({ key, curve }) => scatterSeries(curve, key));
  return (
    <QuestionCard
      title={scatterFinding(run)}
      description={
        <>
          <Term name="scattered-lines">One hot line in each page</Term>, spread wide: huge pages have fewer
          TLB entries, so a scattered working set may run out of them first.
        </>
      }
    >
      <LineChart
        title="Latency over scattered hot lines"
        rows={curveRows(keyed)}
        series={series}
        xAxis={HOT_LINES_AXIS}
        valueAxis={NS_AXIS}
        height={280}
      />
      <MissingCurves curves={missingCurves(curves)} />
    </QuestionCard>
  );
}

/** Base pages are measured beside each larger size, at its distance between lines. */
export function scatterSeries(curve: RunCurve, key: string): ChartSeries {
  const series = curveSeries(curve, key);
  const beside = curve.beside_backing;
  if (curveBacking(curve) !== "base" || !beside) return series;
  const marker = beside === "THP" ? "square" : beside === "1G" ? "diamond" : "triangle";
  return {
    ...series,
    label: `${series.label}, one line per ${beside}`,
    short: `${series.short}, ${beside}`,
    marker,
  };
}

function scatterFinding(run: RunDetail): string {
  const crossing = run.scatter?.crossing;
  const first = run.scatter_loses_from_lines;
  if (first !== null) {
    const pages = crossing?.backing ? `${crossing.backing} pages` : "huge pages";
    return `From ${formatCount(first)} scattered hot lines on, ${pages} are slower than base pages.`;
  }
  if (crossing?.status === "not_reached" && crossing.tested_max !== null) {
    return `Huge pages were not slower up to ${formatCount(crossing.tested_max)} scattered hot lines.`;
  }
  return "Can huge pages hurt here?";
}
