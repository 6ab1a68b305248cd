import type { Finding } from "@/api/types";
import type { State } from "@/components/ui/badges";
import { sortFindings } from "@/components/ui/findings";
import { subjectWords } from "@/lib/subject-words";
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
  findings: Finding[];
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
    .map((node) => ({ ...node, findings: sortFindings(node.findings) }))
    .sort((a, b) => rank(a) - rank(b) || a.name.localeCompare(b.name));
}

const count = (node: FoundNode, state: State) => node.findings.filter((one) => one.state === state).length;

/** A node's verdict in badges: whether it fits, then how much is wrong there besides, as the command line says both. */
export function verdictOf(node: FoundNode): { state: State; text: string }[] {
  if (node.fits === false) return [{ state: "wrong", text: "Does not fit" }];
  const [wrong, attention] = [count(node, "wrong"), count(node, "attention")];
  const fit = fitOf(node);
  if (wrong > 0) return [fit, { state: "wrong", text: `${formatCount(wrong)} wrong` }];
  return attention > 0 ? [fit, { state: "attention", text: `${formatCount(attention)} attention` }] : [fit];
}

function fitOf(node: FoundNode): { state: State; text: string } {
  if (node.not_planned_because !== null) return { state: "unknown", text: "Not planned" };
  if (isFitUnknown(node)) return { state: "unknown", text: "Fit not known" };
  return { state: "ok", text: node.databases.length > 0 ? "Fits" : "Nothing to reserve" };
}

/** The worst of what a node's last badge counts, in words: what is wrong, and what to do; null where nothing is. */
export function worstOf(node: FoundNode): string | null {
  const worst = node.findings[0];
  if (node.fits === false || !worst || RANK[worst.state] === undefined) return null;
  return `${subjectWords(worst.subject)}: ${worst.title}. ${worst.fix ?? ""}`.trim();
}

/** Whether the huge pages fit, in one line: nodes of which that is not known are not among those that fit. */
export function clusterTitle(nodes: readonly FoundNode[]): string {
  const misfits = nodes.filter(({ fits }) => fits === false).length;
  const unknown = nodes.filter(isFitUnknown).length;
  const wrong = nodes.filter((node) => count(node, "wrong") > 0).length;
  const all = formatCounted(nodes.length, "node");
  if (misfits > 0) {
    const rest = unknown > 0 ? `; of ${formatCount(unknown)} it is not known` : "";
    return `${formatCount(misfits)} of ${all} ${misfits === 1 ? "does" : "do"} not fit${rest}.`;
  }
  if (unknown > 0)
    return `Whether its databases fit is not known of ${unknown === nodes.length ? all : `${formatCount(unknown)} of ${all}`}.`;
  const fit = `The huge pages of its databases fit ${nodes.length === 1 ? "its node" : `all ${all}`}`;
  if (wrong === 0) return `${fit}.`;
  return `${fit}; something else is wrong on ${nodes.length === 1 ? "it" : formatCount(wrong)}.`;
}
