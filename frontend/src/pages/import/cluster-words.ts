import type { State } from "@/components/ui/badges";
import { formatCount, formatCounted } from "@/lib/units";

/** What the page reads of a node in the answer for a dump; the service answers it as one document. */
export interface FoundNode {
  name: string;
  fits: boolean | null;
  mem_total_bytes: number;
  not_planned_because: string | null;
  headline: string | null;
  shortfall: { reason: string } | null;
  databases: unknown[];
  findings: { state: string; why: string }[];
}

const RANK = { wrong: 1, attention: 2 } as Record<string, number>;

/** Whether a node has something to fit, of which it is not known whether it does. */
function isFitUnknown({ fits, headline, not_planned_because: unplanned }: FoundNode): boolean {
  return fits === null && (headline !== null || unplanned !== null);
}

function rank(node: FoundNode): number {
  if (node.fits === false) return 0;
  const best = isFitUnknown(node) ? 2 : 3;
  return Math.min(best, ...node.findings.map(({ state }) => RANK[state] ?? best));
}

/** The nodes of an answer: those that do not fit first, then those with something wrong, by name among equals. */
export function nodesOf(answer: Record<string, unknown>): FoundNode[] {
  const nodes = (answer.nodes ?? []) as FoundNode[];
  return nodes
    .map((node) => ({
      ...node,
      findings: [...node.findings].sort((a, b) => (RANK[a.state] ?? 3) - (RANK[b.state] ?? 3)),
    }))
    .sort((a, b) => rank(a) - rank(b) || a.name.localeCompare(b.name));
}

/** A node's verdict in a badge. What is not known is not fine, and what is wrong beside it goes first. */
export function verdictOf(node: FoundNode): { state: State; text: string } {
  const count = (state: string) => node.findings.filter((finding) => finding.state === state).length;
  const [wrong, attention] = [count("wrong"), count("attention")];
  if (node.fits === false) return { state: "wrong", text: "Does not fit" };
  if (node.not_planned_because !== null) return { state: "unknown", text: "Not planned" };
  if (wrong > 0) return { state: "wrong", text: `${formatCount(wrong)} wrong` };
  if (isFitUnknown(node)) return { state: "unknown", text: "Fit not known" };
  if (attention > 0) return { state: "attention", text: `${formatCount(attention)} attention` };
  return { state: "ok", text: node.databases.length > 0 ? "Fits" : "Nothing to reserve" };
}

/** Whether the huge pages fit, in one line: nodes of which that is not known are not among those that fit. */
export function clusterTitle(nodes: readonly FoundNode[]): string {
  const misfits = nodes.filter(({ fits }) => fits === false).length;
  const unknown = nodes.filter(isFitUnknown).length;
  const all = formatCounted(nodes.length, "node");
  if (misfits > 0) {
    const rest = unknown > 0 ? `; of ${formatCount(unknown)} it is not known` : "";
    return `${formatCount(misfits)} of ${all} ${misfits === 1 ? "does" : "do"} not fit${rest}.`;
  }
  if (unknown > 0)
    return `Whether its databases fit is not known of ${unknown === nodes.length ? all : `${formatCount(unknown)} of ${all}`}.`;
  return `The huge pages of its databases fit ${nodes.length === 1 ? "its node" : `all ${all}`}.`;
}
