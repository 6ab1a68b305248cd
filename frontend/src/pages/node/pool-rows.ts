import type { LatestSample } from "@/api/types";
import { GIB, KIB, MIB, TIB } from "@/lib/units";

export interface PoolRow {
  numaNode: number;
  pageBytes: number;
  given: number;
  used: number | null;
  idle: number | null;
  surplus: number | null;
}

/** Pools per NUMA node: what the kernel gave, and what of it is used. */
export function poolRows(sample: LatestSample): PoolRow[] {
  return sample.pools
    .map((pool) => ({
      numaNode: pool.numa_node,
      pageBytes: pool.page_bytes,
      given: pool.nr_hugepages,
      used: pool.free_hugepages === null ? null : pool.nr_hugepages - pool.free_hugepages,
      idle: pool.free_hugepages,
      surplus: pool.surplus_hugepages,
    }))
    .sort((a, b) => a.pageBytes - b.pageBytes || a.numaNode - b.numaNode);
}

const SIZE_UNITS: Record<string, number> = { "": 1, K: KIB, M: MIB, G: GIB, T: TIB };

function parseKernelSize(text: string): number | null {
  const match = /^(\d+)([KMGT]?)$/i.exec(text);
  return match ? Number(match[1]) * (SIZE_UNITS[(match[2] ?? "").toUpperCase()] ?? 1) : null;
}

/**
 * Pages asked for on the kernel command line, by page size. `hugepages=` belongs to the `hugepagesz=` before it, or to
 * the default size. A count per NUMA node (`0:512,1:512`) is summed. Null when the command line is not known.
 */
export function pagesAskedAtBoot(
  commandLine: string | null,
  defaultPageBytes: number | null,
): Map<number, number> | null {
  if (commandLine === null) return null;
  const asked = new Map<number, number>();
  let defaultBytes = defaultPageBytes;
  const words = commandLine.split(/\s+/);
  for (const word of words) {
    if (word.startsWith("default_hugepagesz="))
      defaultBytes = parseKernelSize(word.slice(19)) ?? defaultBytes;
  }
  let current = defaultBytes;
  for (const word of words) {
    if (word.startsWith("hugepagesz=")) current = parseKernelSize(word.slice(11));
    if (!word.startsWith("hugepages=") || current === null) continue;
    const counts = word
      .slice(10)
      .split(",")
      .map((part) => Number(part.includes(":") ? part.split(":")[1] : part));
    if (counts.every(Number.isFinite))
      asked.set(
        current,
        counts.reduce((sum, count) => sum + count, 0),
      );
  }
  return asked;
}
