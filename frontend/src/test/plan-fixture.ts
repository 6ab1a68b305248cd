import type { PlanPreview, SavedPlan } from "@/api/types";
import { GIB, MIB } from "@/lib/units";

type Plan = PlanPreview["plan"];

function gain(instance: string, pageBytes: number, isChosen: boolean) {
  return {
    instance,
    backing: "2M",
    page_bytes: pageBytes,
    saving_ns_per_operation: { low: 10, likely: 40, high: 90 },
    speedup: { low: 1.01, likely: 1.05, high: 1.09 },
    page_tables_bytes: MIB,
    confidence: "medium",
    inputs: [],
    statement: "It saves.",
    backing_kind: "hugetlb",
    is_chosen: isChosen,
    published: null,
    measured_here: null,
    one_measurement: { low: 0.99, likely: 1.05, high: 1.11 },
  };
}

/** A plan of two NUMA nodes with pools of two sizes, the larger size and node first, and one database. */
export function planOf(change: Partial<Record<keyof Plan, unknown>> = {}): Plan {
  const pool = (numa: number, size: number, pages: number, present: number | null) => ({
    numa_node: numa,
    page_bytes: size,
    demand_pages: pages,
    slack_pages: 0,
    pages,
    present_pages: present,
    explanation: null,
    held_pages: 0,
    held_by: [],
    surplus_pages: 0,
  });
  return {
    node: "db-7",
    headline: "Reserve 4,268 pages of 2M (8.34 GiB) on db-7.",
    pools: [pool(1, GIB, 2, 0), pool(1, 2 * MIB, 2134, 0), pool(0, 2 * MIB, 2134, 1024)],
    instances: [],
    ledger: { mem_total_bytes: 64 * GIB, parts: [] },
    gains: [gain("orders", 2 * MIB, true), gain("orders", GIB, false)],
    findings: [],
    net_memory: { locked_bytes: 8 * GIB, used_bytes: 8 * GIB, idle_bytes: 86 * MIB },
    risk: {
      probability: { low: 0, likely: 0, high: 0.005 },
      policy: 0.01,
      meets_policy: true,
      basis: "",
      numa_nodes: [],
    },
    kubernetes: null,
    assumptions: [],
    unknowns: [],
    forecasts: [],
    feasible: true,
    fits: true,
    shortfall: null,
    now: null,
    difference: null,
    ...change,
  } as unknown as Plan;
}

export function verdictOf(change: Partial<PlanPreview["verdict"]> = {}): PlanPreview["verdict"] {
  return {
    answer: "do_it",
    reason: "orders: +5.0 % throughput likely.",
    after: [],
    gains: ["orders: +5.0 % throughput likely, +1.0 to +9.0 %."],
    approve_if: ["orders is postgresql 17."],
    do_not_approve_if: ["The node has changed."],
    costs: [
      "8 GiB the databases need either way.",
      "Available to programs: 20 GiB today, 12 GiB under the plan.",
    ],
    shortage: "Risk that ordinary memory runs out: 0 %.",
    available_now_bytes: 20 * GIB,
    available_planned_bytes: 12 * GIB,
    certainty: "medium",
    on_huge_pages: [],
    question: null,
    ...change,
  };
}

export function previewOf(
  plan: Partial<Record<keyof Plan, unknown>> = {},
  verdict: Partial<PlanPreview["verdict"]> = {},
): PlanPreview {
  return { plan: planOf(plan), verdict: verdictOf(verdict), artifacts: null, artifacts_withheld: null };
}

/** That plan as it was kept, long before anybody looks at it. */
export function keptOf(change: Partial<SavedPlan> = {}): SavedPlan {
  return {
    id: "00000000-0000-4000-8000-000000000001",
    node_id: null,
    node_name: "db-7",
    created_at: "2026-01-02T03:04:05Z",
    sampled_at: "2026-01-02T03:00:00Z",
    run_at: null,
    headline: "Reserve 4,268 pages of 2M (8.34 GiB) on db-7.",
    digest: "7f3a91c25d0eb846".padEnd(64, "0"),
    short_digest: "7f3a-91c2-5d0e-b846",
    model_version: "0.1.0",
    author: "dba",
    version: 1,
    state: "draft",
    approved_by: null,
    approved_at: null,
    approval_ended_at: null,
    in_force: [],
    plan: planOf(),
    verdict: verdictOf(),
    artifacts: [],
    artifacts_withheld: null,
    ...change,
  } as unknown as SavedPlan;
}
