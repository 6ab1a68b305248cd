import type { NodeDetail } from "@/api/types";
import { isFractured } from "@/components/tlb-picture/tlb-model";
import { idlePools } from "@/lib/node-observations";
import { formatBytes, formatPages } from "@/lib/units";

/** The first line of a node's page: what should be done, in words with a number. */
export function nodeHeadline(node: NodeDetail): string {
  const [idle] = idlePools(node);
  if (idle) {
    return `Release ${formatPages(idle.nr_hugepages, idle.page_bytes)} (${formatBytes(idle.nr_hugepages * idle.page_bytes)}) or start what should use them: the pool is idle.`;
  }
  const fractured = node.geometry?.effective_granule.find(
    (granule) => isFractured(granule) && granule.granule_bytes !== null,
  );
  if (fractured) {
    return `Do not expect TLB reach from ${formatBytes(fractured.page_bytes)} pages here: one entry covers ${formatBytes(fractured.granule_bytes)}. They still shorten page walks and save page tables.`;
  }
  if (node.latest_run_id === null) {
    return "Measure this node first: without a benchmark run, gains come from the catalogue and have wide ranges.";
  }
  const reserved = node.pools.reduce((sum, pool) => sum + pool.nr_hugepages * pool.page_bytes, 0);
  if (reserved === 0) {
    return `No huge pages are reserved of ${formatBytes(node.mem_total_bytes)}. Plan the node to see what its databases need.`;
  }
  return `${formatBytes(reserved)} of ${formatBytes(node.mem_total_bytes)} is reserved in huge pages and in use.`;
}
