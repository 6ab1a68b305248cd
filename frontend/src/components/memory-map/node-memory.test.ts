import { describe, expect, it } from "vitest";
import type { LatestSample, SampleMemory } from "@/api/types";
import { GIB, MIB } from "@/lib/units";
import { memoryBars, nodeParts } from "./node-memory";

const memory: SampleMemory = {
  mem_total_bytes: 16 * GIB,
  mem_free_bytes: 4 * GIB,
  mem_available_bytes: 8 * GIB,
  buffers_bytes: null,
  cached_bytes: 4 * GIB,
  slab_bytes: 300 * MIB,
  s_reclaimable_bytes: null,
  s_unreclaim_bytes: 100 * MIB,
  kernel_stack_bytes: 12 * MIB,
  page_tables_bytes: 64 * MIB,
  sec_page_tables_bytes: null,
  percpu_bytes: null,
  anon_pages_bytes: null,
  anon_huge_pages_bytes: null,
  shmem_bytes: null,
  hugetlb_bytes: null,
  committed_as_bytes: null,
  swap_total_bytes: null,
  swap_free_bytes: null,
  direct_map_4k_bytes: null,
  direct_map_2m_bytes: null,
  direct_map_1g_bytes: null,
};
const numa = {
  anon_huge_pages_bytes: null,
  file_pages_bytes: null,
  anon_pages_bytes: null,
  shmem_bytes: null,
  s_reclaimable_bytes: null,
  s_unreclaim_bytes: null,
  kernel_stack_bytes: null,
  page_tables_bytes: null,
  sec_page_tables_bytes: null,
};
const pool = {
  page_bytes: 2 * MIB,
  nr_hugepages: 1024,
  free_hugepages: 512,
  resv_hugepages: 100,
  surplus_hugepages: 0,
};
const sum = (parts: { bytes: number }[]) => parts.reduce((total, part) => total + part.bytes, 0);

describe("nodeParts", () => {
  it("sums to MemTotal exactly, with workloads as the rest", () => {
    const parts = nodeParts(memory, [pool]);
    expect(sum(parts)).toBe(memory.mem_total_bytes);
    expect(parts.map(({ key }) => key)).toEqual([
      "kernel",
      "tenants",
      "page_tables",
      "page_cache",
      "pool:2097152",
      "free",
    ]);
    expect(parts.find(({ key }) => key === "tenants")?.bytes).toBe(6 * GIB - 376 * MIB);
  });
  it("counts as the kernel's what it cannot give back, as the planner does", () => {
    const bytes = (parts: ReturnType<typeof nodeParts>, key: string) =>
      parts.find((part) => part.key === key)?.bytes;
    expect(bytes(nodeParts(memory, []), "kernel")).toBe(112 * MIB);
    expect(bytes(nodeParts(memory, []), "page_cache")).toBe(4 * GIB + 200 * MIB);
    const unsplit = nodeParts({ ...memory, s_unreclaim_bytes: null }, []);
    expect(bytes(unsplit, "kernel")).toBe(312 * MIB);
    expect(bytes(unsplit, "page_cache")).toBe(4 * GIB);
  });
  it("counts shared memory as the workloads', never as cache that gives way", () => {
    const parts = nodeParts({ ...memory, shmem_bytes: 3 * GIB }, [pool]);
    expect(sum(parts)).toBe(memory.mem_total_bytes);
    const cache = parts.find(({ key }) => key === "page_cache");
    expect([cache?.label, cache?.bytes]).toEqual(["Reclaimable cache", GIB + 200 * MIB]);
    expect(parts.find(({ key }) => key === "tenants")?.bytes).toBe(9 * GIB - 376 * MIB);
  });
  it("keeps apart what no counter names, so that the kernel and the workloads are what was measured", () => {
    const seen = { ...memory, anon_pages_bytes: 2 * GIB, shmem_bytes: GIB, percpu_bytes: 8 * MIB };
    const parts = nodeParts(seen, [pool]);
    expect(sum(parts)).toBe(memory.mem_total_bytes);
    const bytes = Object.fromEntries(parts.map((part) => [part.key, part.bytes]));
    expect(bytes.kernel).toBe(120 * MIB);
    expect(bytes.tenants).toBe(3 * GIB);
    // 16 GiB less 4 free, 2 in the pool, 3 of workloads, 3 of cache, 200 MiB of slab, 64 of tables and the kernel's 120.
    expect(bytes.unaccounted).toBe(4 * GIB - 384 * MIB);
    expect(parts.find(({ key }) => key === "unaccounted")?.label).toBe("Not accounted by the kernel");
  });
  it("splits a pool into used, reserved and idle", () => {
    const fills = nodeParts(memory, [pool]).find(({ key }) => key.startsWith("pool"))?.fills ?? [];
    expect(fills.map(({ label, bytes }) => [label, bytes / (2 * MIB)])).toEqual([
      ["Used", 512],
      ["Reserved by mappings", 100],
      ["Idle", 412],
    ]);
  });
  it("calls the rest unknown as soon as one part is", () => {
    const parts = nodeParts({ ...memory, cached_bytes: null }, []);
    expect(parts.find(({ key }) => key === "unknown")?.look).toBe("unknown");
    expect(parts.some(({ key }) => key === "tenants")).toBe(false);
    expect(sum(parts)).toBe(memory.mem_total_bytes);
  });
});

describe("memoryBars", () => {
  const sample: LatestSample = {
    taken_at: "2026-11-20T12:00:00Z",
    memory,
    pools: [{ numa_node: 1, ...pool }],
    global_pools: [{ ...pool, nr_overcommit_hugepages: 0 }],
    numa: [
      { ...numa, id: 0, mem_total_bytes: 8 * GIB, mem_free_bytes: 1 * GIB },
      { ...numa, id: 1, mem_total_bytes: 8 * GIB, mem_free_bytes: null },
    ],
  };
  it("draws one bar for one NUMA node", () => {
    expect(memoryBars("db-7", { ...sample, numa: sample.numa.slice(0, 1) })).toHaveLength(1);
  });
  it("draws one bar a NUMA node, each summing to its own total", () => {
    const bars = memoryBars("db-7", sample);
    expect(bars.map((bar) => sum([...bar.parts]))).toEqual([8 * GIB, 8 * GIB]);
    expect(bars[1]?.parts.map(({ key }) => key)).toEqual(["unknown", "pool:2097152"]);
  });
});
