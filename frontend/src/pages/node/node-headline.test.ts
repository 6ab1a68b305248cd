import { expect, it } from "vitest";
import type { NodeDetail } from "@/api/types";
import { MIB } from "@/lib/units";
import { nodeHeadline } from "./node-headline";

const idle = {
  page_bytes: 2 * MIB,
  numa_node: 0,
  nr_hugepages: 50,
  free_hugepages: 50,
  surplus_hugepages: 0,
};
const node = (findings: readonly unknown[]) =>
  ({
    name: "db-7",
    sample: { pools: [idle] },
    pools: [{ page_bytes: 2 * MIB, nr_hugepages: 50 }],
    numa_node_count: 1,
    mem_total_bytes: 512 * MIB,
    latest_run_id: "a",
    geometry: null,
    findings,
  }) as unknown as NodeDetail;

it("says first what is wrong, in the words of the list of findings", () => {
  const wrong = {
    code: "x",
    state: "wrong",
    subject: "postgresql@systemd:pg.service:5432",
    title: "It fell",
  };
  expect(nodeHeadline(node([{ code: "pool_idle", state: "attention" }, wrong]))).toBe(
    "postgresql in pg.service, port 5432: It fell.",
  );
  expect(nodeHeadline(node([{ ...wrong, subject: "db-7" }]))).toBe("It fell.");
});

it("asks to install the plan in force before it asks for another", () => {
  const drift = {
    code: "plan_drift",
    state: "attention",
    subject: "2M pool on NUMA node 0",
    title: "The plan is to be installed",
  };
  const bare = { ...node([{ code: "pool_idle", state: "attention" }, drift]), pools: [] } as NodeDetail;
  expect(nodeHeadline(bare)).toBe("2M pool on NUMA node 0: The plan is to be installed.");
});

it("asks for the release of no pool that the findings call in order", () => {
  expect(nodeHeadline(node([]))).toBe(
    "100\u00a0MiB of 512\u00a0MiB is reserved in huge pages; 100\u00a0MiB of that is idle.",
  );
});
