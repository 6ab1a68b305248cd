import type { HugeplanServer } from "./hugeplan-server";

/** A report of a machine with so many NUMA nodes, each like one of the recorded machine's two: a machine of its own. */
export async function withNumaNodes(server: HugeplanServer, count: number): Promise<Record<string, unknown>> {
  const { inventory, sample } = await server.recorded("two-numa-nodes");
  const ids = Array.from({ length: count }, (_, id) => id);
  const like = <T>(all: readonly T[], id: number) => all[id % all.length] as T;
  const larger = (amounts: Record<string, number | null>) =>
    Object.fromEntries(
      Object.entries(amounts).map(([name, value]) => [name, value === null ? value : (count / 2) * value]),
    );
  const pools = ids.flatMap((id) =>
    sample.pools.filter(({ numa_node: of }) => of === id % 2).map((pool) => ({ ...pool, numa_node: id })),
  );
  const sum = (pageBytes: number | null, name: "nr_hugepages" | "free_hugepages") =>
    pools.reduce((all, pool) => (pool.page_bytes === pageBytes ? all + pool[name] : all), 0);
  return {
    report_id: crypto.randomUUID(),
    machine_id: `0123456789abcdef0123456789abc${100 + count}`,
    node_name: `numa-${count}`,
    inventory: {
      ...inventory,
      numa_nodes: ids.map((id) => ({ ...like(inventory.numa_nodes, id), id })),
    },
    sample: {
      ...sample,
      memory: larger(sample.memory),
      numa: ids.map((id) => ({ ...like(sample.numa, id), id })),
      pools,
      global_pools: sample.global_pools.map((pool) => ({
        ...pool,
        nr_hugepages: sum(pool.page_bytes ?? null, "nr_hugepages"),
        free_hugepages: sum(pool.page_bytes ?? null, "free_hugepages"),
      })),
    },
  };
}
