import type { NodeSummary, RunCurve } from "@/api/types";

/** A node as the API lists it; `over` replaces what a test is about. */
export function fakeNode(over: Partial<NodeSummary> = {}): NodeSummary {
  return {
    id: "11111111-1111-4111-8111-111111111111",
    name: "db-7",
    machine_id: "0123456789abcdef",
    architecture: "x86_64",
    cpu_brand: "AMD EPYC 9755",
    virtualised: true,
    mem_total_bytes: 64 * 2 ** 30,
    numa_node_count: 1,
    last_report_at: "2026-11-20T11:55:00Z",
    pools: [{ page_bytes: 2097152, nr_hugepages: 512, free_hugepages: 128 }],
    latest_run_id: "22222222-2222-4222-8222-222222222222",
    effective_granule_bytes: 2097152,
    synthetic: false,
    labels: {},
    machine_type: "AMD EPYC 9755, KVM",
    group_key: "0123456789abcdef",
    mem_available_bytes: 40 * 2 ** 30,
    pool_bytes: 2 ** 30,
    pool_idle_bytes: 2 ** 28,
    findings_wrong: 0,
    findings_attention: 0,
    plan_state: null,
    stale: false,
    ...over,
  };
}

/** A latency curve of a run as the API gives it, without points; `over` replaces what a test is about. */
export function fakeCurve(over: Partial<RunCurve> = {}): RunCurve {
  return {
    section: "latency",
    beside_backing: null,
    name: "latency line_per_page 4K",
    x_name: "footprint_bytes",
    backing: "4K",
    backing_kind: "base",
    page_bytes: 4096,
    layout: "line_per_page",
    granted_fraction: 1,
    status: "ok",
    reason: null,
    points: [],
    ...over,
  };
}
