import type { NodeProcesses } from "@/api/types";
import { formatShare } from "@/lib/units";

export type DatabaseWalks = NodeProcesses["walks"][number];

/** What the processor counted of a server's page walks, or why it did not, as one sentence. */
export function walkSentence({ counters }: DatabaseWalks): string {
  const { walk_fraction: share, instructions, data_walks: data } = counters;
  if (share !== null) return `${formatShare(share)} of this server's cycles wait for page walks.`;
  if (counters.status === "ok" && instructions && data !== null)
    return `${((1000 * data) / instructions).toFixed(2)} data page walks per 1,000 instructions; this processor does not count the cycles that they take.`;
  return `Page walks are not counted: ${counters.reason ?? counters.status}.`;
}
