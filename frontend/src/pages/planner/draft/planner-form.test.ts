import { describe, expect, it } from "vitest";
import { fromScenario, initialForm, newDatabase, readForm, toScenario, wholeNumber } from "./planner-form";

describe("toScenario", () => {
  it("leaves out what is empty, so that the server's defaults hold", () => {
    expect(toScenario(initialForm(), true)).toEqual({
      schema_version: 1,
      tenants: [],
      databases: [{ name: "main", engine: "postgresql" }],
    });
  });
  it("writes inline node facts only without a node of the fleet", () => {
    const form = { ...initialForm(), node: { memory: " 32GiB ", cpus: "16" } };
    expect(toScenario(form, false).node).toEqual({ name: "node", memory: "32GiB", cpus: 16 });
    expect(toScenario(form, true)).not.toHaveProperty("node");
  });
  it("sends a pasted table as it is, and a NUMA node as a number", () => {
    const database = {
      ...newDatabase([]),
      numa_node: "1",
      workload: { benefit_table: "8GiB, 12000\n16GiB, 17500\n" },
    };
    const form = { ...initialForm(), databases: [database] };
    expect(toScenario(form, true).databases).toEqual([
      {
        name: "main",
        engine: "postgresql",
        numa_node: 1,
        workload: { benefit_table: "8GiB, 12000\n16GiB, 17500" },
      },
    ]);
    expect(readForm(form).databases[0]?.workload).toEqual(database.workload);
    expect(fromScenario(toScenario(form, true)).notShown).toEqual([]);
  });
  it("keeps settings verbatim and gives wrong numbers to the server as they are", () => {
    const database = {
      ...newDatabase([]),
      settings: { shared_buffers: "8GB", max_connections: "" },
      connections: "many",
    };
    expect(toScenario({ ...initialForm(), databases: [database] }, true).databases).toEqual([
      { name: "main", engine: "postgresql", settings: { shared_buffers: "8GB" }, connections: "many" },
    ]);
  });
  it("sends Kubernetes figures only when the node is a Kubernetes node", () => {
    const reservations = { provider: "gke", max_pods: "110", system_reserved: "1Gi" };
    expect(toScenario({ ...initialForm(), reservations }, true).reservations).toEqual({
      system_reserved: "1Gi",
    });
    expect(
      toScenario({ ...initialForm(), reservations: { ...reservations, kubernetes: true } }, true)
        .reservations,
    ).toEqual({
      kubernetes: true,
      provider: "gke",
      system_reserved: "1Gi",
      max_pods: 110,
    });
  });
});

describe("readForm", () => {
  it("opens a damaged link with what can be read", () => {
    expect(readForm("x")).toEqual(initialForm());
    const form = readForm({ databases: [{ name: "a", engine: 7, settings: "?" }], tenants: "no" });
    expect(form.databases).toEqual([{ name: "a", engine: "", settings: {} }]);
    expect(form.tenants).toEqual([]);
  });
  it("gives each new database a name of its own", () => {
    const first = newDatabase([]);
    const second = newDatabase([first]);
    expect([first.name, second.name, newDatabase([first, second]).name]).toEqual(["main", "db-2", "db-3"]);
  });
});

describe("fromScenario", () => {
  it("is the inverse of toScenario", () => {
    const scenario = toScenario(
      {
        ...initialForm(),
        node: { memory: "32GiB", cpus: "8" },
        tenants: [{ name: "app", kind: "pod", count: "4", request: "6Gi", limit: "8Gi" }],
        policy: { slack: "2%" },
      },
      false,
    );
    const { form, notShown } = fromScenario(scenario);
    expect(notShown).toEqual([]);
    expect(toScenario(form, false)).toEqual(scenario);
  });
  it("loses nothing that it has no input for, whatever is renamed, removed or edited", () => {
    const scenario = {
      schema_version: 1,
      node: { name: "db-7", memory: "64GiB", thp: "madvise", numa_nodes: [{ id: 0, memory: "64GiB" }] },
      reservations: { kubernetes: true, provider: "gke", memory_manager_static: true },
      policy: { slack: 0.02, page_sizes: ["2MiB"] },
      observed: { workloads: "ignore" },
      tenants: [
        { name: "gone", kind: "pod", request: "1Gi", limit: "1Gi" },
        {
          name: "api",
          kind: "pod",
          count: 2,
          request: "1Gi",
          limit: "1Gi",
          history: { times: [1], used: [2] },
        },
      ],
      databases: [
        {
          name: "a",
          engine: "postgresql",
          runs_as: "postgresql@container:7",
          stateful_set: "shop/orders-db",
          container: "postgres",
          weight: 2,
          workload: { row_bytes: 200, zipf_s: 0.9 },
        },
        { name: "b", engine: "mysql", container: "mysql" },
      ],
    };
    const { form, notShown } = fromScenario(scenario);
    expect(notShown).toEqual([]);
    const edited = {
      ...form,
      tenants: form.tenants.slice(1),
      databases: form.databases.map((database) =>
        database.name === "a" ? { ...database, name: "renamed" } : database,
      ),
    };
    // Through the address and back.
    const saved = toScenario(readForm(JSON.parse(JSON.stringify(edited))), false, scenario);
    expect(saved).toMatchObject({
      ...scenario,
      policy: { slack: "0.02", page_sizes: ["2MiB"] },
      tenants: [{ ...scenario.tenants[1] }],
      databases: [{ ...scenario.databases[0], name: "renamed" }, scenario.databases[1]],
    });
  });
  it("takes the rest of the reservations over only with the switch that they belong to", () => {
    const scenario = {
      schema_version: 1,
      reservations: { kubernetes: true, hugepage_aware_eviction: false },
      databases: [],
    };
    const { form } = fromScenario(scenario);
    expect(toScenario(form, true, scenario).reservations).toEqual(scenario.reservations);
    const off = { ...form, reservations: { ...form.reservations, kubernetes: false } };
    expect(toScenario(off, true, scenario)).not.toHaveProperty("reservations");
  });
});

it("reads whole numbers only", () => {
  expect([wholeNumber("200"), wholeNumber(" "), wholeNumber("2.5"), wholeNumber("1e3")]).toEqual([
    200,
    undefined,
    "2.5",
    "1e3",
  ]);
});
