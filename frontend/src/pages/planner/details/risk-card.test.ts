import { describe, expect, it } from "vitest";
import type { Plan } from "@/api/types";
import { riskState } from "../answer/plan-figures";
import { riskTitle } from "./risk-card";

const range = (low: number, likely: number, high: number) => ({ low, likely, high });
const numa = (numa_node: number, likely: number, high = likely, room_bytes = 2 ** 30) => ({
  numa_node,
  room_bytes,
  probability: range(0, likely, high),
});
const plan = (risk: Partial<Plan["risk"]>, kinds: string[] = ["tenants"]): Plan =>
  ({
    risk: {
      probability: range(0, 0, 0),
      policy: 0.01,
      meets_policy: true,
      basis: "",
      numa_nodes: [],
      ...risk,
    },
    ledger: { parts: kinds.map((kind) => ({ kind })) },
  }) as Plan;
const plain = (text: string) => text.replaceAll("\u00a0", " ");

describe("riskTitle", () => {
  it("names the NUMA node that is worst off, against what is accepted", () => {
    expect(riskTitle(plan({ numa_nodes: [numa(0, 0), numa(1, 0.207)] }))).toBe(
      "NUMA node 1 runs out with a risk of 21\u00a0%.",
    );
    expect(riskTitle(plan({ numa_nodes: [numa(0, 0), numa(1, 0.004, 0.03)] }))).toBe(
      "NUMA node 1 may run out: the risk is up to 3\u00a0%.",
    );
    expect(riskTitle(plan({ numa_nodes: [numa(0, 0), numa(1, 0)] }))).toBe(
      "No NUMA node runs out by itself.",
    );
    expect(plain(riskTitle(plan({ numa_nodes: [numa(1, 1, 1, -(2 ** 30))] })))).toBe(
      "NUMA node 1 lacks 1 GiB.",
    );
  });
});

describe("riskState", () => {
  it("is unknown wherever the range of the risk holds the policy", () => {
    const range = (low: number, high: number) => ({ low, likely: low, high });
    expect(riskState(plan({ meets_policy: true }))).toBe("within");
    expect(riskState(plan({ meets_policy: false, probability: range(0.02, 0.5) }))).toBe("above");
    expect(riskState(plan({ meets_policy: false, probability: range(0, 0.5) }))).toBe("unknown");
    expect(riskState(plan({ meets_policy: null, probability: range(0, 0.5) }))).toBe("unknown");
    expect(riskState(plan({ meets_policy: null, probability: null }))).toBe("unknown");
  });
});
