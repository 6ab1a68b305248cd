import type { NodeProcesses, ProcessMemory } from "@/api/types";
import { pageSizeShort } from "@/lib/page-size";
import { formatBytes } from "@/lib/units";

type Limit = NonNullable<NodeProcesses["huge_page_limits"]>[number];
type Unit = NonNullable<NodeProcesses["units"]>[number];

/** A process's memory by what backs it. Null is unknown. */
export interface ProcessRow {
  key: string;
  name: string;
  pid: number;
  baseBytes: number | null;
  thpBytes: number | null;
  /** In pools, by page size; one entry without a size where the kernel gave only the sum. */
  pools: { pageBytes: number | null; bytes: number }[] | null;
  pageTableBytes: number | null;
  unit: Unit | null;
  limits: Limit[];
}

function sum(...parts: (number | null | undefined)[]): number | null {
  let total = 0;
  for (const part of parts) {
    if (part === null || part === undefined) return null;
    total += part;
  }
  return total;
}

/** Memory of one process in the huge page pools; null when either part is unknown. */
export function hugetlbBytes(process: ProcessMemory): number | null {
  return sum(process.private_hugetlb_bytes, process.shared_hugetlb_bytes) ?? process.hugetlb_bytes ?? null;
}

function poolsOf(process: ProcessMemory): ProcessRow["pools"] {
  const total = hugetlbBytes(process);
  if (total === null) return null;
  if (total === 0) return [];
  const bySize = new Map<number, number>();
  for (const mapping of process.huge_page_mappings ?? []) {
    const bytes = (mapping.shared_bytes ?? 0) + (mapping.private_bytes ?? 0);
    if (bytes > 0) bySize.set(mapping.page_bytes, (bySize.get(mapping.page_bytes) ?? 0) + bytes);
  }
  if (bySize.size === 0) return [{ pageBytes: null, bytes: total }];
  return [...bySize].sort(([a], [b]) => a - b).map(([pageBytes, bytes]) => ({ pageBytes, bytes }));
}

/** Processes by page size, each with its container and that container's huge page limits; users of pools first. */
export function processRows({ processes, units, huge_page_limits: limits }: NodeProcesses): ProcessRow[] {
  const unitOf = new Map((units ?? []).map((unit) => [unit.key, unit]));
  const rows = processes.map((process) => {
    const thpBytes = sum(process.anon_huge_bytes, process.shmem_pmd_mapped_bytes);
    // The kernel's resident set leaves hugetlbfs out and holds THP.
    const baseBytes =
      process.rss_bytes === null || process.rss_bytes === undefined || thpBytes === null
        ? null
        : Math.max(0, process.rss_bytes - thpBytes);
    return {
      key: `${process.pid}:${process.start_time_ticks}`,
      name: process.name,
      pid: process.pid,
      baseBytes,
      thpBytes,
      pools: poolsOf(process),
      pageTableBytes: process.vm_pte_bytes ?? null,
      unit: process.unit ? (unitOf.get(process.unit) ?? null) : null,
      limits: process.unit ? (limits ?? []).filter(({ unit }) => unit === process.unit) : [],
    };
  });
  const inPools = (row: ProcessRow) => (row.pools ?? []).reduce((total, { bytes }) => total + bytes, 0);
  return rows.sort((a, b) => inPools(b) - inPools(a) || (b.baseBytes ?? 0) - (a.baseBytes ?? 0));
}

/** What a container may use of one page size, in words. */
export function limitText(limit: Limit): string {
  const size = pageSizeShort(limit.page_bytes);
  if (limit.limited === false) return `${size}: no limit`;
  if (limit.limit_bytes === null) return `${size}: unknown`;
  const used = limit.usage_bytes === null ? "" : `, ${formatBytes(limit.usage_bytes)} used`;
  const failed = limit.failures ? `, refused ${limit.failures} times` : "";
  return `${size}: ${formatBytes(limit.limit_bytes)}${used}${failed}`;
}
