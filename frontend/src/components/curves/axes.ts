import type { ChartAxis, ValueAxis } from "@/components/charts/chart-types";
import { formatBytes, formatNs, formatNsDelta } from "@/lib/units";

/** The axes that latency curves share on every page. */
export const FOOTPRINT_AXIS: ChartAxis = { label: "Footprint (log2)", scale: "log2", format: formatBytes };
export const NS_AXIS: ValueAxis = {
  label: "ns per access (median; band 10th to 90th percentile)",
  format: formatNs,
  formatDelta: formatNsDelta,
};
