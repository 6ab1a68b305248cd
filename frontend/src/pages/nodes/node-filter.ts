import type { NodeSummary } from "@/api/types";

export interface NodeFilter {
  kind?: "any" | "physical" | "virtual";
  pools?: "any" | "reserved" | "none";
}

/** The filters that the server does not know; it has already applied the search. */
export function filterNodes(nodes: readonly NodeSummary[], { kind, pools }: NodeFilter): NodeSummary[] {
  return nodes.filter((node) => {
    if (kind === "physical" && node.virtualised !== false) return false;
    if (kind === "virtual" && node.virtualised !== true) return false;
    const reserved = node.pools.some((pool) => pool.nr_hugepages > 0);
    if (pools === "reserved" && !reserved) return false;
    return !(pools === "none" && reserved);
  });
}

export function isFiltered(search: NodeFilter & { q?: string }): boolean {
  return Boolean(search.q) || (search.kind ?? "any") !== "any" || (search.pools ?? "any") !== "any";
}
