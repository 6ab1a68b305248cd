import type { PoolBenefit } from "@/api/types";
import type { ChartReference, ChartSeries } from "@/components/charts/chart-types";
import { LineChart } from "@/components/charts/line-chart";
import { formatBytes, formatThroughput } from "@/lib/units";
import { token } from "@/theme/tokens";
import { benefitRows, measuredRows } from "./benefit-curve";

const SERIES: readonly ChartSeries[] = [
  { key: "fitted", label: "Fitted curve", short: "fitted", color: token("text-dim"), marker: "none" },
  {
    key: "measured",
    label: "Measured",
    short: "",
    color: token("accent"),
    marker: "circle",
    isPoints: true,
  },
];

/** Throughput over pool size, with the planned pool and the knees. */
export default function PoolBenefitChart({ name, benefit }: { name: string; benefit: PoolBenefit }) {
  const references: ChartReference[] = [
    {
      x: benefit.pool_bytes,
      label: `planned ${formatBytes(benefit.pool_bytes)}`,
      color: token("accent"),
    },
    { x: benefit.knee_95_bytes, label: `95 % at ${formatBytes(benefit.knee_95_bytes)}` },
    { x: benefit.knee_99_bytes, label: `99 % at ${formatBytes(benefit.knee_99_bytes)}` },
  ];
  return (
    <LineChart
      title={`Throughput of ${name} by buffer pool size`}
      rows={benefitRows(benefit)}
      tableRows={measuredRows(benefit)}
      series={SERIES}
      xAxis={{ label: "Buffer pool", scale: "linear", format: formatBytes }}
      valueAxis={{ label: "Throughput, in the table's unit", format: formatThroughput }}
      references={references}
      height={240}
    />
  );
}
