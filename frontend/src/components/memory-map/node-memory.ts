import type { LatestSample, SampleMemory } from "@/api/types";
import { compareParts, type MapBar, type MapPart } from "@/components/memory-map/memory-map-types";
import { pageSizeColor, pageSizeShort } from "@/lib/page-size";
import { formatBytes } from "@/lib/units";
import { token } from "@/theme/tokens";

interface PoolState {
  page_bytes: number;
  nr_hugepages: number;
  free_hugepages: number | null;
  resv_hugepages: number | null;
}

/** Memory in use that no counter of the kernel names; the planner's ledger has it under the same name. */
export const NOT_ACCOUNTED = "Not accounted by the kernel";

/** One pool as a part: used, reserved by mappings, and idle inside it. */
function poolPart(pool: PoolState): MapPart {
  const bytes = pool.nr_hugepages * pool.page_bytes;
  const base = {
    key: `pool:${pool.page_bytes}`,
    label: `Pool of ${pageSizeShort(pool.page_bytes)} pages`,
    bytes,
    color: pageSizeColor(pool.page_bytes, "hugetlb"),
    source: "measured" as const,
    look: "pool" as const,
    pageBytes: pool.page_bytes,
  };
  if (pool.free_hugepages === null) return { ...base, detail: "How much of it is used is unknown." };
  const reserved = Math.min(pool.resv_hugepages ?? 0, pool.free_hugepages) * pool.page_bytes;
  const free = pool.free_hugepages * pool.page_bytes;
  return {
    ...base,
    fills: [
      { label: "Used", bytes: bytes - free, look: "used" },
      { label: "Reserved by mappings", bytes: reserved, look: "reserved" },
      { label: "Idle", bytes: free - reserved, look: "idle" },
    ].filter((fill) => fill.bytes > 0) as MapPart["fills"],
  };
}

function measured(key: string, label: string, bytes: number, color: string, detail?: string): MapPart {
  return { key, label, bytes, color, source: "measured", look: "solid", detail };
}

/** Slab that the kernel gives back when memory is short; 0 where the report does not tell it apart. */
function reclaimableBytes(memory: SampleMemory): number {
  return memory.slab_bytes === null || memory.s_unreclaim_bytes === null
    ? 0
    : Math.max(0, memory.slab_bytes - memory.s_unreclaim_bytes);
}

/**
 * Kernel memory that /proc/meminfo names, less what it gives back: what the planner counts on, too. Null when any of
 * it is unknown.
 */
function kernelBytes(memory: SampleMemory): number | null {
  return memory.slab_bytes === null || memory.kernel_stack_bytes === null
    ? null
    : memory.slab_bytes -
        reclaimableBytes(memory) +
        memory.kernel_stack_bytes +
        (memory.sec_page_tables_bytes ?? 0) +
        (memory.percpu_bytes ?? 0);
}

/** What no counter of the kernel holds, and what is left for programs; null where their memory was not reported. */
function unaccounted(memory: SampleMemory, rest: number): MapPart | null {
  if (memory.anon_pages_bytes === null || memory.shmem_bytes === null) return null;
  const bytes = rest - memory.anon_pages_bytes - memory.shmem_bytes;
  return bytes <= 0
    ? null
    : {
        ...measured(
          "unaccounted",
          NOT_ACCOUNTED,
          bytes,
          token("ledger-kernel"),
          "MemTotal less every other part.",
        ),
        source: "computed",
      };
}

/** What the kernel counts as cache. Shared memory is part of its count, and programs hold it: it is no cache. */
function cachePart(memory: SampleMemory, cachedBytes: number, withSlab: boolean): MapPart {
  const slab = withSlab ? reclaimableBytes(memory) : 0;
  return memory.shmem_bytes === null
    ? measured(
        "page_cache",
        "Cache and shared memory",
        cachedBytes + slab,
        token("ledger-page-cache"),
        "The report does not tell them apart.",
      )
    : measured(
        "page_cache",
        "Reclaimable cache",
        Math.max(0, cachedBytes - memory.shmem_bytes) + slab,
        token("ledger-reclaimable"),
        "Files and slab that the kernel gives back when memory is short.",
      );
}

/**
 * All of MemTotal as parts that sum to it exactly. What is not counted anywhere belongs to processes, if everything
 * else is known; if something is not, the rest is unknown.
 */
export function nodeParts(memory: SampleMemory, pools: readonly PoolState[]): MapPart[] {
  const total = memory.mem_total_bytes;
  const poolParts = pools.filter((pool) => pool.nr_hugepages > 0).map(poolPart);
  const kernel = kernelBytes(memory);
  const known = [
    kernel === null
      ? null
      : measured(
          "kernel",
          "Kernel",
          kernel,
          token("ledger-kernel"),
          "Unreclaimable slab, kernel stacks and per-CPU memory.",
        ),
    memory.page_tables_bytes === null
      ? null
      : measured("page_tables", "Page tables", memory.page_tables_bytes, token("ledger-page-tables")),
    memory.cached_bytes === null ? null : cachePart(memory, memory.cached_bytes, kernel !== null),
  ];
  const free =
    memory.mem_free_bytes === null
      ? null
      : measured("free", "Free", memory.mem_free_bytes, token("ledger-free"));
  const parts = [...known, ...poolParts, free].filter((part) => part !== null);
  const left = total - parts.reduce((sum, part) => sum + part.bytes, 0);
  const complete = !known.includes(null) && free !== null;
  const odd = complete ? unaccounted(memory, left) : null;
  const rest = left - (odd?.bytes ?? 0);
  const processes: MapPart = complete
    ? {
        key: "tenants",
        label: "Workloads",
        bytes: rest,
        color: token("ledger-tenants"),
        source: "computed",
        look: "solid",
        detail:
          memory.shmem_bytes === null
            ? "MemTotal less every other part: mostly the private memory of programs."
            : `MemTotal less every other part: private memory of programs, and ${formatBytes(memory.shmem_bytes)} that they share.`,
      }
    : {
        key: "unknown",
        label: "Not known",
        bytes: rest,
        color: token("ledger-unknown"),
        source: "unknown",
        look: "unknown",
        detail: "The report does not say what this is.",
      };
  return [...parts, ...(odd ? [odd] : []), processes]
    .map((part): MapPart => (part.key === "free" ? { ...part, look: "free" } : part))
    .sort(compareParts);
}

/** One bar for a node, or one a NUMA node where there are several. */
export function memoryBars(name: string, sample: LatestSample): MapBar[] {
  const memory = sample.memory;
  const numa = sample.numa.filter((node) => node.mem_total_bytes !== null);
  if (numa.length < 2) {
    return [
      {
        key: "node",
        label: name,
        totalBytes: memory.mem_total_bytes,
        parts: nodeParts(memory, sample.global_pools),
      },
    ];
  }
  return numa.map((node) => {
    const total = node.mem_total_bytes ?? 0;
    const pools = sample.pools
      .filter((pool) => pool.numa_node === node.id && pool.nr_hugepages > 0)
      .map((pool) => poolPart(pool));
    const inPools = pools.reduce((sum, pool) => sum + pool.bytes, 0);
    const free = node.mem_free_bytes;
    const used: MapPart = {
      key: free === null ? "unknown" : "in_use",
      label: free === null ? "Not known" : "In use",
      bytes: total - inPools - (free ?? 0),
      color: token("ledger-tenants"),
      source: free === null ? "unknown" : "computed",
      look: free === null ? "unknown" : "solid",
    };
    const freePart: MapPart[] =
      free === null
        ? []
        : [
            {
              key: "free",
              label: "Free",
              bytes: free,
              color: token("ledger-free"),
              source: "measured",
              look: "free",
            },
          ];
    return {
      key: `numa${node.id}`,
      label: `NUMA node ${node.id}`,
      totalBytes: total,
      parts: [used, ...pools, ...freePart],
    };
  });
}
