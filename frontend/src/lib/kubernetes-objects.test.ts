import { expect, it } from "vitest";
import { slimDump } from "./kubernetes-objects";

/** A pod as kubectl prints it, with two containers and who set which of its fields. */
function printedPod(index: number) {
  const named = (name: string) => ({
    name,
    image: `registry.example/${name}:1.2.3`,
    resources: { requests: { memory: "1Gi" }, limits: { memory: "2Gi" } },
    volumeMounts: [{ name: "config", mountPath: "/etc/app" }],
  });
  const fared = (name: string) => ({
    name,
    image: `registry.example/${name}:1.2.3`,
    imageID: `registry.example/${name}@sha256:${"0".repeat(64)}`,
    containerID: `containerd://${"0".repeat(64)}`,
    state: { running: { startedAt: "2026-11-01T00:00:00Z" } },
    lastState: {},
    ready: true,
    restartCount: 0,
    started: true,
  });
  const fields = (names: string[]) => Object.fromEntries(names.map((name) => [`f:${name}`, { ".": {} }]));
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: {
      name: `api-${index}`,
      namespace: "shop",
      labels: { app: "api" },
      annotations: { "kubectl.kubernetes.io/last-applied-configuration": "{}".repeat(500), team: "shop" },
      managedFields: [
        {
          manager: "kubelet",
          fieldsV1: fields(["status", "conditions", "containerStatuses", "podIP", "phase"]),
        },
      ],
    },
    spec: { nodeName: "n1", containers: [named("api"), named("proxy")], restartPolicy: "Always" },
    status: {
      phase: "Running",
      conditions: [{ type: "Ready", status: "True" }],
      containerStatuses: [fared("api"), fared("proxy")],
      podIPs: [{ ip: "10.0.0.1" }],
    },
  };
}

it("halves what kubectl prints at least, and keeps all that a rule reads", () => {
  const items = Array.from({ length: 3 }, (_, index) => printedPod(index));
  const text = JSON.stringify({ apiVersion: "v1", kind: "List", items });
  const slim = slimDump(text);
  expect(slim.length).toBeLessThan(text.length / 2);
  const [pod] = JSON.parse(slim).items;
  const [{ metadata, spec }] = items as [ReturnType<typeof printedPod>];
  expect(pod).toEqual({
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: "api-0", namespace: "shop", labels: metadata.labels, annotations: { team: "shop" } },
    spec,
    status: { phase: "Running", conditions: [{ type: "Ready", status: "True" }] },
  });
});

it.each(["NAME READY", '{"items": [', "[1, 2]", "null", '"text"', '{"kind": "Pod"}', '{"items": [null]}'])(
  "leaves %s to the service",
  (text) => {
    expect(slimDump(text)).toBe(text);
  },
);
