import type { FleetPlanJob, FleetSummary } from "@/api/types";
import { formatPages } from "@/lib/page-size";
import { formatCount } from "@/lib/units";

/** How far a job is, as a share of 1 and in words. */
export function progressWords(job: Pick<FleetPlanJob, "status" | "nodes_done" | "nodes_total">) {
  const { nodes_done: done, nodes_total: total } = job;
  return {
    share: total > 0 ? done / total : 0,
    text: `${formatCount(done)} of ${formatCount(total)} nodes planned`,
  };
}

/** How many of the nodes are made up; empty where none is. */
export function syntheticWords(fleet: Pick<FleetSummary, "nodes" | "nodes_synthetic"> | undefined): string {
  if (!fleet || fleet.nodes_synthetic === 0) return "";
  const { nodes, nodes_synthetic: synthetic } = fleet;
  if (synthetic === nodes) return nodes === 1 ? "The node is synthetic." : "All nodes are synthetic.";
  return `${formatCount(synthetic)} of all ${formatCount(nodes)} nodes ${synthetic === 1 ? "is" : "are"} synthetic.`;
}

/** The pools of a group's nodes, summed over their NUMA nodes, by page size. */
export function formatPoolList(pools: readonly Record<string, unknown>[]): string {
  const pages = new Map<number, number>();
  for (const { page_bytes: size, pages: count } of pools)
    if (typeof size === "number" && typeof count === "number")
      pages.set(size, (pages.get(size) ?? 0) + count);
  if (pages.size === 0) return "no huge pages";
  return [...pages].map(([size, count]) => formatPages(count, size)).join(", ");
}

export const STATUS = {
  queued: { state: "unknown", text: "Waiting" },
  running: { state: "unknown", text: "Running" },
  done: { state: "ok", text: "Done" },
  failed: { state: "wrong", text: "Failed" },
  cancelled: { state: "attention", text: "Cancelled" },
} as const;
