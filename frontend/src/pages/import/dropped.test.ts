import { expect, it } from "vitest";
import { sortedOut } from "./dropped";

const node = {
  kind: "Node",
  metadata: { name: "db-1", managedFields: [{ manager: "kubelet" }], annotations: { a: "b" } },
  status: { capacity: { memory: "1Ki" }, images: [{ names: ["x"] }] },
};
const file = (value: unknown, name = "cluster.json") => ({ name, text: JSON.stringify(value) });

it("takes a dump as one list, without what no rule reads", () => {
  const { objects, others } = sortedOut([file({ kind: "List", items: [node] })]);
  expect(others).toEqual([]);
  expect(objects).toEqual({
    apiVersion: "v1",
    kind: "List",
    items: [
      {
        kind: "Node",
        metadata: { name: "db-1", annotations: { a: "b" } },
        status: { capacity: { memory: "1Ki" } },
      },
    ],
  });
});

it("puts several dumps together: nodes in one file, pods in another", () => {
  const pod = { kind: "Pod", metadata: { name: "pg-0" }, spec: {}, status: { phase: "Running" } };
  const { objects } = sortedOut([
    file({ kind: "List", items: [node] }),
    file({ kind: "List", items: [pod] }),
  ]);
  expect(objects?.items).toHaveLength(2);
});

it.each([
  ["a kernel command line", "hugepages=512"],
  ["broken JSON", '{"kind": "List", "items": ['],
  ["another document", '{"kind": "Deployment"}'],
  ["a pod that is only a manifest", JSON.stringify({ kind: "Pod", metadata: { name: "a" }, spec: {} })],
])("leaves %s to the linter", (_, text) => {
  const { objects, others } = sortedOut([{ name: "f", text }]);
  expect(objects).toBeNull();
  expect(others).toEqual([{ name: "f", text }]);
});
