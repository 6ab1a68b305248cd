import type { NodeDetail } from "@/api/types";
import { formatPages } from "@/lib/page-size";
import { subjectWords } from "@/lib/subject-words";
import { formatBytes } from "@/lib/units";
import { fracturedSentence } from "./machine/tlb-meaning";
import { largestIdlePool, poolRows } from "./memory/pool-rows";

/** The first line of a node's page: what should be done, in words with a number. */
export function nodeHeadline(node: NodeDetail): string {
  const rows = poolRows(node.sample);
  // What is wrong comes before what could be better, and the first line says what the list under it does.
  const wrong = node.findings.find(({ state }) => state === "wrong");
  // A plan in force is followed before another is made.
  const first = wrong ?? node.findings.find(({ code }) => code === "plan_drift");
  if (first) {
    const subject = first.subject === node.name ? "" : `${subjectWords(first.subject)}: `;
    return `${subject}${first.title}.`;
  }
  const idle = node.findings.some(({ code }) => code === "pool_idle") && largestIdlePool(rows);
  if (idle) {
    const where = node.numa_node_count > 1 ? ` on NUMA node ${idle.numaNode}` : "";
    const size = idle.allocated === 1 ? "" : ` (${formatBytes(idle.allocated * idle.pageBytes)})`;
    return `Release ${formatPages(idle.allocated, idle.pageBytes)}${size}${where}, or start what should use them: the pool is idle.`;
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
  const known = rows.every(({ free }) => free !== null);
  const unused = rows.reduce((sum, { free, pageBytes }) => sum + (free ?? 0) * pageBytes, 0);
  const use = !known
    ? "how much of it is in use is not known"
    : unused === 0
      ? "all of it is in use"
      : `${formatBytes(unused)} of that is idle`;
  return `${formatBytes(reserved)} of ${formatBytes(node.mem_total_bytes)} is reserved in huge pages; ${use}.`;
}
