import type { NodeDetail, NumaPool } from "@/api/types";
import { formatPages } from "@/lib/page-size";
import { formatBytes } from "@/lib/units";
import { fracturedSentence } from "./tlb-meaning";

/** The largest pool of one NUMA node of which no page is used. */
function largestIdlePool(node: NodeDetail): NumaPool | undefined {
  return node.sample.pools
    .filter((pool) => pool.nr_hugepages > 0 && pool.free_hugepages === pool.nr_hugepages)
    .sort((a, b) => b.nr_hugepages * b.page_bytes - a.nr_hugepages * a.page_bytes)[0];
}

/** The first line of a node's page: what should be done, in words with a number. */
export function nodeHeadline(node: NodeDetail): string {
  const idle = largestIdlePool(node);
  if (idle) {
    const where = node.numa_node_count > 1 ? ` on NUMA node ${idle.numa_node}` : "";
    const size = idle.nr_hugepages === 1 ? "" : ` (${formatBytes(idle.nr_hugepages * idle.page_bytes)})`;
    return `Release ${formatPages(idle.nr_hugepages, idle.page_bytes)}${size}${where}, or start what should use them: the pool is idle.`;
  }
  const fractured = node.geometry && fracturedSentence(node.geometry, node.inventory.base_page_bytes);
  if (fractured) return fractured;
  if (node.latest_run_id === null) {
    return "Measure this node first: without a benchmark run, gains come from the catalogue and have wide ranges.";
  }
  const reserved = node.pools.reduce((sum, pool) => sum + pool.nr_hugepages * pool.page_bytes, 0);
  if (reserved === 0) {
    return `No huge pages are reserved of ${formatBytes(node.mem_total_bytes)}. Plan the node to see what its databases need.`;
  }
  return `${formatBytes(reserved)} of ${formatBytes(node.mem_total_bytes)} is reserved in huge pages and in use.`;
}
