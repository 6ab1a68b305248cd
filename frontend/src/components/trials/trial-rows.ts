import type { Trial } from "@/api/types";
import { formatBytes, formatCount, formatPercentChange } from "@/lib/units";

interface TrialRow {
  pages: string;
  /** Null where nothing was measured. */
  gain: string | null;
  /** Whether the interval is narrow and equal pages are equal. */
  isAnswer: boolean;
  why: string | null;
  noise: string | null;
  /** From the node's curves when the trial came; null where none were known. */
  predicted: string | null;
  /** Whether the measured gain lies in the predicted range; null where either is missing. */
  isInside: boolean | null;
}

type Size = Trial["page_sizes"][number];
type Gain = Size["gain"];

function isInside({ text, gain, predicted }: Size): boolean | null {
  if (text === null || !gain || !predicted) return null;
  return predicted.low <= gain.likely && gain.likely <= predicted.high;
}

function gainText(gain: Gain): string | null {
  if (!gain) return null;
  const percent = (value: number) => formatPercentChange(value / 100);
  if (gain.low === null || gain.high === null) return percent(gain.likely);
  return `${percent(gain.likely)} (${percent(gain.low)} to ${percent(gain.high)})`;
}

/** One row per page size that was tried, with what equal pages differed by. */
export function trialRows({ page_sizes: sizes }: Pick<Trial, "page_sizes">): TrialRow[] {
  const equal = sizes.find(({ page_size: size }) => size === "equal");
  return sizes
    .filter((size) => size !== equal)
    .map((size) => ({
      pages: size.page_size === "thp" ? "THP" : size.page_size,
      gain: gainText(size.gain),
      isAnswer: size.text !== null,
      why: size.reason ?? (size.status === "too_noisy" ? "Too noisy" : null),
      noise: gainText(equal?.gain ?? null),
      predicted: gainText(size.predicted),
      isInside: isInside(size),
    }));
}

/** What was done, as far as the trial says. */
export function shapeText(shape: Trial["shape"]): string {
  const parts = [
    shape.base_command,
    shape.operation_class === "script" ? "own script" : null,
    shape.row_bytes ? `rows of ${formatCount(shape.row_bytes)} B` : null,
    shape.clients ? `${formatCount(shape.clients)} ${shape.clients === 1 ? "client" : "clients"}` : null,
    shape.data_bytes ? `${formatBytes(shape.data_bytes)} of data` : null,
  ];
  return parts.filter(Boolean).join(", ");
}
