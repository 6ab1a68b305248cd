import type { FleetPlanGroup, FleetPlanJob, FleetPlanSummary, FleetSummary, Verdict } from "@/api/types";
import { formatBytes, formatCount, formatCounted } from "@/lib/units";

/** How far a job is, as a share of 1 and in words. */
export function progressWords(job: Pick<FleetPlanJob, "status" | "nodes_done" | "nodes_total">) {
  const { nodes_done: done, nodes_total: total } = job;
  return {
    share: total > 0 ? done / total : 0,
    text: `${formatCount(done)} of ${formatCounted(total, "node")} planned`,
  };
}

/** How many of the nodes are made up; empty where none is. */
export function syntheticWords(fleet: Pick<FleetSummary, "nodes" | "nodes_synthetic"> | undefined): string {
  if (!fleet || fleet.nodes_synthetic === 0) return "";
  const { nodes, nodes_synthetic: synthetic } = fleet;
  if (synthetic === nodes) return nodes === 1 ? "The node is synthetic." : "All nodes are synthetic.";
  return `${formatCount(synthetic)} of all ${formatCount(nodes)} nodes ${synthetic === 1 ? "is" : "are"} synthetic.`;
}

/** A reason in the row of its own node: without the name that the row begins with. */
export function withoutName(reason: string, name: string): string {
  return reason.startsWith(`${name}: `) ? reason.slice(name.length + 2) : reason;
}

/** The verdict that most nodes of a group have, and how many have another one. */
export function answerOf(
  answers: Record<string, number>,
): { answer: Verdict["answer"]; others: number } | undefined {
  const [first, ...rest] = Object.entries(answers).sort(([, a], [, b]) => b - a);
  return (
    first && {
      answer: first[0] as Verdict["answer"],
      others: rest.reduce((sum, [, count]) => sum + count, 0),
    }
  );
}

/** Whether a group's plan has anything to install. */
export function changesPools({ figures }: Pick<FleetPlanGroup, "figures">): boolean {
  return (
    figures !== null &&
    figures.nodes_not_fitting === 0 &&
    figures.sizes.some(({ present_pages: now, planned_pages: planned }) => now !== planned)
  );
}

/** How many nodes neither fit nor do not: a size was not read, or there is no plan of them. */
export function fitUnknown({
  nodes_fit_unknown: counted,
  nodes_without_facts: unplanned,
}: FleetPlanSummary): number {
  return counted ?? unplanned;
}

/** Whether the plans fit, in words: a node of which it is not known is not among those that fit. */
export function headline(summary: FleetPlanSummary): string {
  const { nodes, nodes_not_fitting: not, nodes_missing_pages: missing, locked_bytes: locked } = summary;
  const unknown = fitUnknown(summary);
  const all = nodes === 1 ? "the one node" : `all ${formatCounted(nodes, "node")}`;
  const parts = [
    not > 0 && `does not fit on ${formatCount(not)} of ${formatCounted(nodes, "node")}`,
    unknown > 0 && `may or may not fit on ${formatCount(unknown)} of which too little is known`,
    not + unknown < nodes && `fits on ${not + unknown === 0 ? all : formatCount(nodes - not - unknown)}`,
  ].filter(Boolean);
  return `It ${parts.join(", ") || "covers no node"}; the plans reserve ${formatBytes(locked)}, and ${formatCounted(missing, "node")} ${missing === 1 ? "lacks" : "lack"} planned pages today.`;
}

export const STATUS = {
  queued: { state: "unknown", text: "Waiting" },
  running: { state: "unknown", text: "Running" },
  done: { state: "ok", text: "Done" },
  failed: { state: "wrong", text: "Failed" },
  cancelled: { state: "attention", text: "Cancelled" },
} as const;
