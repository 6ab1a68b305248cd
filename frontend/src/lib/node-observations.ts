import type { NodeSummary } from "@/api/types";
import { formatBytes, formatCount, formatPages, MIB } from "./units";

const STALE_SECONDS = 24 * 3600;

/** Something about a node that its owner would want to know, from its latest report alone. */
export interface Observation {
  code: "fractured" | "idle_pool" | "silent" | "not_measured";
  state: "wrong" | "attention" | "unknown";
  text: string;
  /** Memory that it costs, so that the worst comes first; 0 where it costs none. */
  idleBytes: number;
}

/** A pool of which less than this share is idle is not worth a remark: engines leave a few pages over. */
const IDLE_SHARE = 0.1;

/** Pools of which a good part is not in use. Unknown use is not idle. */
export function idlePools(node: Pick<NodeSummary, "pools">): NodeSummary["pools"] {
  return node.pools.filter(
    (pool) =>
      pool.nr_hugepages > 0 &&
      pool.free_hugepages !== null &&
      pool.free_hugepages > IDLE_SHARE * pool.nr_hugepages,
  );
}

export function isFracturedNode(node: Pick<NodeSummary, "effective_granule_bytes">): boolean {
  return node.effective_granule_bytes !== null && node.effective_granule_bytes < 2 * MIB;
}

/** What stands out about a node. An empty list means that nothing does, not that all is well. */
export function nodeObservations(node: NodeSummary, now: Date): Observation[] {
  const found: Observation[] = [];
  if (isFracturedNode(node)) {
    found.push({
      code: "fractured",
      state: "attention",
      text: `One TLB entry covers ${formatBytes(node.effective_granule_bytes)} with 2 MiB pages: the hypervisor backs them with smaller pages.`,
      idleBytes: 0,
    });
  }
  for (const pool of idlePools(node)) {
    found.push({
      code: "idle_pool",
      // Nothing uses any of it: worse than a pool that is nearly full or half idle.
      state: pool.free_hugepages === pool.nr_hugepages ? "wrong" : "attention",
      text: idleText(pool),
      idleBytes: (pool.free_hugepages ?? 0) * pool.page_bytes,
    });
  }
  if ((now.getTime() - new Date(node.last_report_at).getTime()) / 1000 > STALE_SECONDS) {
    found.push({
      code: "silent",
      state: "unknown",
      text: "No report for more than a day. What is shown may be old.",
      idleBytes: 0,
    });
  }
  if (node.latest_run_id === null) {
    found.push({
      code: "not_measured",
      state: "unknown",
      text: "Its TLB has not been measured, so gains are estimates.",
      idleBytes: 0,
    });
  }
  return found.sort(byWorst);
}

const STATE_RANK = { wrong: 0, attention: 1, unknown: 2 } as const;

/** The worst first: by state, then by the memory that it costs. */
export function byWorst(a: Observation, b: Observation): number {
  return STATE_RANK[a.state] - STATE_RANK[b.state] || b.idleBytes - a.idleBytes;
}

function idleText({
  free_hugepages: free,
  nr_hugepages: all,
  page_bytes: pageBytes,
}: NodeSummary["pools"][number]): string {
  if (free === all) return `${formatPages(all, pageBytes)} are reserved and nothing uses them.`;
  const bytes = formatBytes((free ?? 0) * pageBytes);
  return `${formatCount(free)} of ${formatPages(all, pageBytes)} are reserved and idle (${bytes}).`;
}

/** Bytes set aside in pools, and how many of them are used; null when a pool's free pages are unknown. */
export function poolBytes(pools: NodeSummary["pools"]): { reserved: number; used: number | null } {
  let reserved = 0;
  let used: number | null = 0;
  for (const pool of pools) {
    reserved += pool.nr_hugepages * pool.page_bytes;
    used =
      used === null || pool.free_hugepages === null
        ? null
        : used + (pool.nr_hugepages - pool.free_hugepages) * pool.page_bytes;
  }
  return { reserved, used };
}
