import type { NodeSummary } from "@/api/types";
import type { MapPart } from "@/components/memory-map/memory-map-types";
import { nodeObservations, type Observation } from "@/lib/node-observations";
import { pageSizeColor } from "@/lib/page-size";
import { formatBytes, formatCount } from "@/lib/units";

export interface FleetSummary {
  nodes: number;
  memoryBytes: number;
  reservedBytes: number;
  idleBytes: number;
  /** Nodes on which at least one pool's free pages are unknown. */
  unknownUse: number;
  measured: number;
  toLookAt: { node: NodeSummary; observations: Observation[] }[];
  parts: MapPart[];
}

/** The fleet at a glance, from the latest report of each node. */
export function summariseFleet(nodes: readonly NodeSummary[], now: Date): FleetSummary {
  const bySize = new Map<number, { reserved: number; idle: number }>();
  let unknownUse = 0;
  for (const node of nodes) {
    if (node.pools.some((pool) => pool.free_hugepages === null && pool.nr_hugepages > 0)) unknownUse += 1;
    for (const pool of node.pools) {
      const sum = bySize.get(pool.page_bytes) ?? { reserved: 0, idle: 0 };
      sum.reserved += pool.nr_hugepages * pool.page_bytes;
      sum.idle += (pool.free_hugepages ?? 0) * pool.page_bytes;
      bySize.set(pool.page_bytes, sum);
    }
  }
  const memoryBytes = nodes.reduce((sum, node) => sum + node.mem_total_bytes, 0);
  const sizes = [...bySize.entries()].sort(([a], [b]) => a - b).filter(([, sum]) => sum.reserved > 0);
  const reservedBytes = sizes.reduce((sum, [, { reserved }]) => sum + reserved, 0);
  const pools = sizes.map(
    ([pageBytes, { reserved, idle }]): MapPart => ({
      key: `pool:${pageBytes}`,
      label: `Pools of ${formatBytes(pageBytes)} pages`,
      bytes: reserved,
      color: pageSizeColor(pageBytes, "hugetlb"),
      source: "measured",
      look: "pool",
      pageBytes,
      fills: [
        { label: "Used", bytes: reserved - idle, look: "used" },
        { label: "Idle", bytes: idle, look: "idle" },
      ],
    }),
  );
  return {
    nodes: nodes.length,
    memoryBytes,
    reservedBytes,
    idleBytes: sizes.reduce((sum, [, { idle }]) => sum + idle, 0),
    unknownUse,
    measured: nodes.filter((node) => node.latest_run_id !== null).length,
    toLookAt: nodes
      .map((node) => ({ node, observations: nodeObservations(node, now) }))
      .filter(({ observations }) => observations.length > 0)
      .sort((a, b) => b.observations.length - a.observations.length),
    parts: [
      ...pools,
      {
        key: "ordinary",
        label: "Ordinary memory",
        bytes: memoryBytes - reservedBytes,
        color: "transparent",
        source: "computed",
        look: "free",
        detail: "MemTotal less what the pools hold.",
      },
    ],
  };
}

/** The first line of the overview: what to do, in words with a number. */
export function fleetHeadline(fleet: FleetSummary): string {
  const withObservation = (wanted: (observation: Observation) => boolean) =>
    fleet.toLookAt.filter(({ observations }) => observations.some(wanted)).length;
  const nodes = (count: number) => `${formatCount(count)} ${count === 1 ? "node" : "nodes"}`;
  const idle = withObservation(({ code }) => code === "idle_pool");
  if (idle > 0) {
    return `${formatBytes(fleet.idleBytes)} of the ${formatBytes(fleet.reservedBytes)} reserved in huge pages is idle. Look at ${nodes(idle)}.`;
  }
  const attention = withObservation(({ state }) => state === "attention");
  if (attention > 0) return `Look at ${nodes(attention)} of ${formatCount(fleet.nodes)}.`;
  if (fleet.reservedBytes === 0) {
    return `No huge pages are reserved on ${fleet.nodes === 1 ? "the node" : `any of ${nodes(fleet.nodes)}`}. Plan one to see what they would buy.`;
  }
  return `${formatBytes(fleet.reservedBytes)} is reserved in huge pages on ${nodes(fleet.nodes)}, and nothing stands out.`;
}
