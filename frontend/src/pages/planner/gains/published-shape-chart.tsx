import type { PublishedPoolShape } from "@/api/types";
import type { ChartReference, ChartSeries } from "@/components/charts/chart-types";
import { LineChart } from "@/components/charts/line-chart";
import { formatBytes, formatShare } from "@/lib/units";
import { token } from "@/theme/tokens";

const SERIES: readonly ChartSeries[] = [
  {
    key: "published",
    label: "Published, not this workload",
    short: "published",
    color: token("text-dim"),
    marker: "none",
    isAssumed: true,
  },
];

interface PublishedShapeChartProps {
  name: string;
  shape: PublishedPoolShape;
  poolBytes: number;
  /** Null: the sizes cannot be placed, and the axis is the share of the working set. */
  workingSetBytes: number | null;
}

/** The band of published shapes, dashed; the planned pool on it where the working set is known. */
export default function PublishedShapeChart({
  name,
  shape,
  poolBytes,
  workingSetBytes,
}: PublishedShapeChartProps) {
  const scale = workingSetBytes ?? 1;
  const references: ChartReference[] = [...new Set([shape.knee.low, shape.knee.high])].map(
    (share, index) => ({
      x: share * scale,
      label: index === 0 ? "95 % at best here" : "95 % at worst here",
    }),
  );
  if (workingSetBytes !== null)
    references.push({ x: poolBytes, label: `planned ${formatBytes(poolBytes)}`, color: token("accent") });
  return (
    <LineChart
      title={`Published throughput by buffer pool size, for ${name}`}
      rows={shape.band.map(({ share, reached }) => ({
        x: share * scale,
        values: { published: reached.likely },
        ranges: { published: [reached.low, reached.high] },
      }))}
      series={SERIES}
      xAxis={{
        label: workingSetBytes === null ? "Buffer pool, share of the working set" : "Buffer pool",
        scale: "linear",
        format: workingSetBytes === null ? formatShare : formatBytes,
      }}
      valueAxis={{
        label: "Share of the best throughput",
        format: (value) => (value === null ? "" : formatShare(value)),
      }}
      references={references}
      height={240}
    />
  );
}
