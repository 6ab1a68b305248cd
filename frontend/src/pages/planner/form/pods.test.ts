import { describe, expect, it } from "vitest";
import { podsToTenants, quantityBytes } from "./pods";

const pod = (
  name: string,
  owner: [string, string] | null,
  memory: [string, string?][],
  phase = "Running",
) => ({
  metadata: { name, namespace: "shop", ownerReferences: owner ? [{ kind: owner[0], name: owner[1] }] : [] },
  spec: {
    containers: memory.map(([request, limit]) => ({
      resources: { requests: { memory: request }, limits: limit ? { memory: limit } : {} },
    })),
  },
  status: { phase },
});
const list = (...items: unknown[]) => JSON.stringify({ kind: "List", items });

it("reads quantities as Kubernetes writes them", () => {
  expect(["6Gi", "1500M", "1e9", "128974848", "100m", "6 apples"].map(quantityBytes)).toEqual([
    6442450944,
    1500000000,
    1e9,
    128974848,
    1,
    null,
  ]);
});

describe("podsToTenants", () => {
  it("makes pods of one deployment one workload with replicas, and sums containers", () => {
    const { tenants } = podsToTenants(
      list(
        pod(
          "api-7d9f4b6c5-abcde",
          ["ReplicaSet", "api-7d9f4b6c5"],
          [
            ["1Gi", "2Gi"],
            ["128Mi", "256Mi"],
          ],
        ),
        pod(
          "api-7d9f4b6c5-fghij",
          ["ReplicaSet", "api-7d9f4b6c5"],
          [
            ["1Gi", "2Gi"],
            ["128Mi", "256Mi"],
          ],
        ),
        pod("kafka-0", ["StatefulSet", "kafka"], [["8Gi", "8Gi"]]),
        pod("job-1", ["Job", "job"], [["4Gi", "4Gi"]], "Succeeded"),
      ),
    );
    expect(tenants).toEqual([
      { name: "api", kind: "pod", count: "2", request: "1207959552", limit: "2415919104" },
      { name: "kafka", kind: "pod", count: "1", request: "8589934592", limit: "8589934592" },
    ]);
  });
  it("leaves open what one container does not bound, instead of counting it as zero", () => {
    expect(podsToTenants(list(pod("a", null, [["1Gi", "2Gi"], ["1Gi"]]))).tenants[0]).toMatchObject({
      request: "2147483648",
      limit: "",
    });
  });
  it("says what it cannot read", () => {
    expect(podsToTenants("NAME READY").error).toMatch(/not JSON/);
    expect(podsToTenants('{"a": 1}').error).toMatch(/items/);
    expect(podsToTenants(list()).error).toMatch(/no running pod/);
  });
});
