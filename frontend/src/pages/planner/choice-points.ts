import type { InstancePlan } from "@/api/types";
import { pageSizeShort } from "@/lib/page-size";

/** The points of one candidate; they add up to its score. */
export interface ChoicePoints {
  gain: number;
  memory: number;
  operation: number;
  /** What rounding loses, as the planner words it: "256 KiB". */
  waste: string;
}

// The planner words a candidate's points like this; any other text (an obstacle, no pool) is shown as it is.
const POINTS =
  /^gain ([+-][\d.]+), memory ([+-][\d.]+) \((.+) rounding waste\), operation ([+-][\d.]+) points$/;

/** The points behind a choice, or null when its text gives none. */
export function choicePoints(why: string): ChoicePoints | null {
  const [, gain, memory, waste, operation] = POINTS.exec(why) ?? [];
  if (gain === undefined || memory === undefined || waste === undefined || operation === undefined)
    return null;
  return { gain: Number(gain), memory: Number(memory), operation: Number(operation), waste };
}

/** Why this size, without the points that the comparison below it shows. */
export function whyWithoutPoints({ chosen, why }: Pick<InstancePlan, "chosen" | "why">): string {
  if (!chosen || choicePoints(chosen.why) === null) return why;
  const size = pageSizeShort(chosen.page_bytes);
  const points = `${size}: ${chosen.why}. `;
  return why.startsWith(points) ? `${size}: ${why.slice(points.length)}` : why;
}

/** Points with their sign: "+4.97", "−0.10". */
export function formatPoints(points: number): string {
  const size = Math.abs(points).toFixed(2);
  if (Number(size) === 0) return size;
  return `${points > 0 ? "+" : "−"}${size}`;
}
