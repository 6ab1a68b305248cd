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

function rank(node: FoundNode): number {
  if (node.fits === false) return 0;
  return Math.min(3, ...node.findings.map(({ state }) => RANK[state] ?? 3));
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

/** How many findings of a node say wrong, and how many ask for attention. */
export function findingsOf({ findings }: FoundNode): { wrong: number; attention: number } {
  const count = (state: string) => findings.filter((finding) => finding.state === state).length;
  return { wrong: count("wrong"), attention: count("attention") };
}
