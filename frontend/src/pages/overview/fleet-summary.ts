import type { FleetSummary } from "@/api/types";
import type { MapPart } from "@/components/memory-map/memory-map-types";
import { pageSizeColor } from "@/lib/page-size";
import { formatBytes, formatCount } from "@/lib/units";
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
        label: `Pools of ${formatBytes(pool.page_bytes)} pages`,
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
            ? `How much is used is unknown on ${formatCount(pool.nodes_unknown)} nodes; they count as used.`
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
  const ordinary: MapPart = {
    key: "in_use",
    label: "Workloads and kernel",
    bytes: memory.mem_total_bytes - inPools - tables.bytes - available.bytes,
    color: token("ledger-tenants"),
    source: "computed",
    look: "solid",
    detail:
      memory.nodes_unknown > 0
        ? `MemTotal less every other part; ${formatCount(memory.nodes_unknown)} nodes do not report all of it.`
        : "MemTotal less every other part.",
  };
  return [ordinary, tables, ...poolParts, available];
}

const nodes = (count: number) => `${formatCount(count)} ${count === 1 ? "node" : "nodes"}`;

/** The first line of the overview: what is wrong and what lies idle, in words with a number. */
export function fleetHeadline(fleet: InFigures): string {
  const idle = fleet.memory.pool_idle_bytes;
  const facts = [
    fleet.time_bombs > 0 &&
      `${formatCount(fleet.time_bombs)} time ${fleet.time_bombs === 1 ? "bomb" : "bombs"}`,
    fleet.silent_fallbacks > 0 &&
      `${formatCount(fleet.silent_fallbacks)} silent ${fleet.silent_fallbacks === 1 ? "fallback" : "fallbacks"}`,
    idle > 0 && `${formatBytes(idle)} of huge pages idle`,
  ].filter(Boolean);
  const behind = facts.length > 0 ? `: ${facts.join(", ")}` : "";
  if (fleet.nodes_wrong > 0)
    return `${formatCount(fleet.nodes_wrong)} of ${nodes(fleet.nodes)} have a problem to fix${behind}.`;
  if (fleet.nodes_attention > 0)
    return `${formatCount(fleet.nodes_attention)} of ${nodes(fleet.nodes)} need attention${behind}.`;
  if (fleet.memory.pool_bytes === 0)
    return `No huge pages are reserved on ${nodes(fleet.nodes)}. Plan one to see what they would buy.`;
  return `${formatBytes(fleet.memory.pool_bytes)} is reserved in huge pages on ${nodes(fleet.nodes)}, and no check found a problem${behind}.`;
}
