import type { FleetSummary } from "@/api/types";
import type { MapPart } from "@/components/memory-map/memory-map-types";
import { pageSizeColor, pageSizeShort } from "@/lib/page-size";
import { formatBytes, formatCount, formatCounted } from "@/lib/units";
import { token } from "@/theme/tokens";

type InFigures = Pick<
  FleetSummary,
  | "nodes"
  | "nodes_wrong"
  | "nodes_attention"
  | "time_bombs"
  | "silent_fallbacks"
  | "memory"
  | "pools"
  | "nodes_synthetic"
>;

/** All of the fleet's memory by what it does, as parts that sum to it exactly. */
export function fleetParts({ memory, pools }: InFigures): MapPart[] {
  const poolParts = pools
    .filter(({ total_bytes: total }) => total > 0)
    .map(
      (pool): MapPart => ({
        key: `pool:${pool.page_bytes}`,
        label: `Pools of ${pageSizeShort(pool.page_bytes)}`,
        bytes: pool.total_bytes,
        color: pageSizeColor(pool.page_bytes, "hugetlb"),
        source: "measured",
        look: "pool",
        pageBytes: pool.page_bytes,
        fills: [
          { label: "Used", bytes: pool.total_bytes - pool.free_bytes, look: "used" },
          { label: "Idle", bytes: pool.free_bytes, look: "idle" },
        ],
        detail:
          pool.nodes_unknown > 0
            ? `How much is used is unknown on ${formatCounted(pool.nodes_unknown, "node")}; what is unknown counts as used.`
            : undefined,
      }),
    );
  const tables: MapPart = {
    key: "page_tables",
    label: "Page tables",
    bytes: memory.page_tables_bytes,
    color: token("ledger-page-tables"),
    source: "measured",
    look: "solid",
  };
  const inPools = poolParts.reduce((sum, { bytes }) => sum + bytes, 0);
  const available: MapPart = {
    key: "free",
    label: "Available",
    bytes: Math.min(memory.mem_available_bytes, memory.mem_total_bytes - inPools - tables.bytes),
    color: token("ledger-free"),
    source: "measured",
    look: "free",
    detail: "MemAvailable: free memory and what the kernel can give back.",
  };
  const rest = Math.max(0, memory.mem_total_bytes - inPools - tables.bytes - available.bytes);
  const transparent: MapPart = {
    key: "in_use:thp",
    label: "Transparent huge pages",
    bytes: Math.min(memory.anon_huge_pages_bytes, rest),
    color: token("page-thp"),
    source: "measured",
    look: "solid",
    detail: "AnonHugePages: ordinary memory that the kernel backs with huge pages by itself.",
  };
  const ordinary: MapPart = {
    key: "in_use",
    label: "Workloads and kernel",
    bytes: rest - transparent.bytes,
    color: token("ledger-tenants"),
    source: "computed",
    look: "solid",
    detail:
      memory.nodes_unknown > 0
        ? `MemTotal less every other part; not all of it is reported by ${formatCounted(memory.nodes_unknown, "node")}.`
        : "MemTotal less every other part.",
  };
  return [ordinary, transparent, tables, ...poolParts, available];
}

/** The first line of the overview: what is wrong and what is idle, in words with a number. */
export function fleetHeadline(fleet: InFigures): string {
  const { pool_bytes: pools, pool_idle_bytes: idle, nodes_unknown: unknown } = fleet.memory;
  const bombs = fleet.time_bombs > 0 && formatCounted(fleet.time_bombs, "time bomb");
  const fallbacks = fleet.silent_fallbacks > 0 && formatCounted(fleet.silent_fallbacks, "silent fallback");
  const kinds = [bombs, fallbacks].filter(Boolean).join(" and ");
  const found =
    fleet.nodes_wrong > 0
      ? `${formatCount(fleet.nodes_wrong)} of ${formatCounted(fleet.nodes, "node")} ${fleet.nodes_wrong === 1 ? "has" : "have"} a problem to fix${kinds ? `, with ${kinds}` : ""}`
      : fleet.nodes_attention > 0
        ? `${formatCount(fleet.nodes_attention)} of ${formatCounted(fleet.nodes, "node")} ${fleet.nodes_attention === 1 ? "needs" : "need"} attention`
        : `No check found a problem on ${formatCounted(fleet.nodes, "node")}`;
  // What some nodes do not say may be more: nothing is then all of it, or none.
  const lying =
    pools === 0
      ? `no huge pages are ${unknown > 0 ? "known to be " : ""}reserved`
      : idle > 0
        ? `${unknown > 0 ? "at least " : ""}${formatBytes(idle)} of huge pages are idle`
        : unknown > 0
          ? `none of ${formatBytes(pools)} of huge pages are known to be idle`
          : `all ${formatBytes(pools)} of huge pages are in use`;
  return `${found}; ${lying}.`;
}
