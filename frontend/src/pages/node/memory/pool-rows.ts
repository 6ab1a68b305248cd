import type { LatestSample } from "@/api/types";

export interface PoolRow {
  numaNode: number;
  pageBytes: number;
  allocated: number;
  used: number | null;
  free: number | null;
  surplus: number | null;
}

/** Pools per NUMA node: what is allocated, and what of it is used. */
export function poolRows(sample: LatestSample): PoolRow[] {
  return sample.pools
    .map((pool) => ({
      numaNode: pool.numa_node,
      pageBytes: pool.page_bytes,
      allocated: pool.nr_hugepages,
      used: pool.free_hugepages === null ? null : pool.nr_hugepages - pool.free_hugepages,
      free: pool.free_hugepages,
      surplus: pool.surplus_hugepages,
    }))
    .sort((a, b) => a.pageBytes - b.pageBytes || a.numaNode - b.numaNode);
}

/** The largest pool of one NUMA node of which no page is used: what a node's page names first, wherever it does. */
export function largestIdlePool(rows: readonly PoolRow[]): PoolRow | undefined {
  return rows
    .filter((row) => row.allocated > 0 && row.free === row.allocated)
    .sort((a, b) => b.allocated * b.pageBytes - a.allocated * a.pageBytes)[0];
}
