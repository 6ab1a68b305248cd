import { expect, it } from "vitest";
import type { NodeDetail } from "@/api/types";
import { GIB, MIB } from "@/lib/units";
import { nodeHeadline } from "../node-headline";
import { poolRows } from "./pool-rows";
import { poolsTitle } from "./pools-card";

const pool = (pageBytes: number, numaNode: number, allocated: number, free: number) => ({
  page_bytes: pageBytes,
  numa_node: numaNode,
  nr_hugepages: allocated,
  free_hugepages: free,
  surplus_hugepages: 0,
});

it.each([
  [
    "1G",
    [pool(2 * MIB, 0, 512, 512), pool(GIB, 1, 8, 8)],
    /^Release 8\s×\s1G .* on NUMA node 1/,
    /^8\s×\s1G on NUMA node 1/,
  ],
  [
    "2M",
    [pool(2 * MIB, 1, 8192, 8192), pool(GIB, 0, 8, 8)],
    /^Release 8,192\s×\s2M .* on NUMA node 1/,
    /^8,192\s×\s2M on NUMA node 1/,
  ],
])(
  "names the same idle pool in the node's first line and above its pools: %s",
  (_size, pools, line, title) => {
    const sample = { pools } as unknown as NodeDetail["sample"];
    const findings = [{ code: "pool_idle", state: "attention" }];
    const node = { sample, numa_node_count: 2, pools: [], findings } as unknown as NodeDetail;
    expect(nodeHeadline(node)).toMatch(line);
    expect(poolsTitle(poolRows(sample))).toMatch(title);
  },
);
