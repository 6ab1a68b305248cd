import type { RunDetail } from "@/api/types";
import type { ChartAxis } from "@/components/charts/chart-types";
import { LineChart } from "@/components/charts/line-chart";
import { curveRows, curveSeries, measuredCurves, missingCurves } from "@/components/curves/curve-series";
import { MissingCurves } from "@/components/curves/missing-curves";
import { QuestionCard } from "@/components/ui/question-card";
import { formatCount } from "@/lib/units";
import { NS_AXIS } from "./latency-card";

const HOT_LINES_AXIS: ChartAxis = { label: "Hot lines (log2)", scale: "log2", format: formatCount };

/** Few hot lines over a wide range: from how many on large TLB entries run out before small ones. */
export function ScatterCard({ run }: { run: RunDetail }) {
  const curves = run.curves.filter((curve) => curve.section === "scatter");
  const keyed = measuredCurves(curves).map((curve, index) => ({ key: `${index}`, curve }));
  if (keyed.length === 0) return null;
  const series = keyed.map(({ key, curve }) => curveSeries(curve, key));
  return (
    <QuestionCard
      title={scatterFinding(run)}
      description="One hot line in each page, spread wide: huge pages have fewer TLB entries, so a scattered working set may run out of them first."
    >
      <LineChart
        title="Latency over scattered hot lines"
        rows={curveRows(keyed)}
        series={series}
        xAxis={HOT_LINES_AXIS}
        valueAxis={NS_AXIS}
        baseline={series[0]?.marker === "circle" ? series[0].key : undefined}
        height={280}
      />
      <MissingCurves curves={missingCurves(curves)} />
    </QuestionCard>
  );
}

function scatterFinding(run: RunDetail): string {
  const crossing = run.scatter?.crossing;
  if (crossing?.hot_lines != null)
    return `From ${formatCount(crossing.hot_lines)} scattered hot lines on, huge pages lose.`;
  if (crossing?.status === "not_reached" && crossing.tested_max !== null) {
    return `Huge pages did not lose up to ${formatCount(crossing.tested_max)} scattered hot lines.`;
  }
  return "Can huge pages hurt here?";
}
