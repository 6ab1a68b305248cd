import { describe, expect, it } from "vitest";
import type { Scenario } from "@/api/types";
import {
  broughtDraft,
  changesToRunning,
  type Draft,
  draftOnNode,
  edit,
  redo,
  sameDraft,
  startHistory,
  startingDraft,
  undo,
} from "./draft";
import { initialForm, toScenario } from "./planner-form";

const draft = (buffers: string, nodeId: string | null = null): Draft => {
  const form = initialForm();
  return {
    nodeId,
    form: {
      ...form,
      databases: [{ name: "main", engine: "postgresql", settings: { shared_buffers: buffers } }],
    },
  };
};
const saved = (value: Draft, version = 1): Scenario => ({
  id: "s",
  name: "twelve",
  node_id: value.nodeId,
  version,
  created_at: "2026-11-20T12:00:00Z",
  updated_at: "2026-11-20T12:00:00Z",
  latest_plan_id: null,
  scenario: toScenario(value.form, value.nodeId !== null),
});

describe("undo and redo", () => {
  it("takes one stretch of typing back in one step", () => {
    let history = startHistory(draft("1GB"));
    history = edit(history, draft("12GB"), 1000);
    history = edit(history, draft("12"), 1100);
    history = edit(history, draft("14GB"), 1200);
    history = edit(history, draft("16GB"), 9000);
    expect(history.past).toHaveLength(2);
    history = undo(history);
    expect(history.present).toEqual(draft("14GB"));
    history = undo(history);
    expect(history.present).toEqual(draft("1GB"));
    expect(undo(history)).toBe(history);
    expect(redo(redo(history)).present).toEqual(draft("16GB"));
  });
  it("forgets the way forth at the next edit, and counts no edit that changes nothing", () => {
    const history = undo(edit(startHistory(draft("1GB")), draft("2GB"), 0));
    expect(edit(history, draft("1GB"), 5000)).toBe(history);
    expect(edit(history, draft("3GB"), 5000).future).toEqual([]);
  });
});

describe("startingDraft", () => {
  const stored = saved(draft("12GB", "node-a"));
  it("takes unsaved edits out of the address, for a saved scenario too", () => {
    const edited = draft("13GB", "node-b");
    expect(startingDraft(stored, { form: edited.form, node: "node-b" }, null)).toEqual(edited);
  });
  it("opens a saved scenario as it is stored when the address holds no edit", () => {
    const found = startingDraft(stored, {}, null);
    expect(found.nodeId).toBe("node-a");
    expect(found.form.databases[0]?.settings).toEqual({ shared_buffers: "12GB" });
  });
  it("starts from what runs on the node", () => {
    expect(startingDraft(null, { node: "node-a" }, draft("2GB", "node-a"))).toEqual(draft("2GB", "node-a"));
  });
});

describe("draftOnNode", () => {
  const running = {
    databases: [
      {
        name: "orders",
        engine: "postgresql",
        settings: { shared_buffers: "20480MB" },
        runs_as: "postgresql:main",
      },
    ],
  };
  const names = (value: Draft) => value.form.databases.map(({ name }) => name);

  it("brings the node's databases as they run, and says which of the sample each one is", () => {
    const chosen = draftOnNode({ form: initialForm(), nodeId: null }, "n1", running, null);
    expect(chosen.nodeId).toBe("n1");
    expect(toScenario(chosen.form, true).databases).toEqual(running.databases);
  });
  it("keeps everything without a node, and the server that a database describes", () => {
    const chosen = draftOnNode({ form: initialForm(), nodeId: null }, "n1", running, null);
    const free = draftOnNode(chosen, null, null, running);
    expect(toScenario(free.form, false).databases).toEqual(running.databases);
    expect(toScenario(draftOnNode(free, "n1", running, null).form, true).databases).toEqual(
      running.databases,
    );
  });
  it("keeps what somebody changed of a node's database, on this node and on the next", () => {
    const chosen = draftOnNode({ form: initialForm(), nodeId: null }, "n1", running, null);
    const databases = chosen.form.databases.map((database) => ({
      ...database,
      settings: { shared_buffers: "16GB" },
    }));
    const changed = { ...chosen, form: { ...chosen.form, databases } };
    const again = draftOnNode(draftOnNode(changed, null, null, running), "n1", running, null);
    expect(toScenario(again.form, true).databases).toEqual([
      { ...running.databases[0], settings: { shared_buffers: "16GB" } },
    ]);
    const elsewhere = { databases: [{ name: "orders", engine: "mysql", runs_as: "mysql:3306" }] };
    expect(toScenario(draftOnNode(changed, "n2", elsewhere, running).form, true).databases).toEqual([
      elsewhere.databases[0],
      { name: "orders-2", engine: "postgresql", settings: { shared_buffers: "16GB" } },
    ]);
  });
  it("keeps a typed database beside one of the node with the same name", () => {
    const typed = { form: { ...initialForm(), databases: [] }, nodeId: null } as Draft;
    typed.form.databases = [{ name: "orders", engine: "postgresql", settings: { shared_buffers: "8GB" } }];
    expect(names(draftOnNode(typed, "n1", running, null))).toEqual(["orders", "orders-2"]);
  });
  it("keeps a database that somebody typed, and drops those of the node before", () => {
    const first = draftOnNode(draft("8GB"), "n1", running, null);
    expect(names(first)).toEqual(["orders", "main"]);
    expect(names(draftOnNode(first, "n2", {}, running))).toEqual(["main"]);
    expect(names(draftOnNode(draftOnNode(draft(""), "n1", running, null), "n2", null, running))).toEqual([
      "main",
    ]);
  });
  it("plans a node with a kubelet as one of Kubernetes, and the next one as that one is", () => {
    const gke = { ...running, reservations: { kubernetes: true, provider: "gke" } };
    const first = draftOnNode({ form: initialForm(), nodeId: null }, "n1", gke, null);
    expect(toScenario(first.form, true).reservations).toEqual({ kubernetes: true, provider: "gke" });
    const second = draftOnNode(first, "n2", running, gke);
    expect(toScenario(second.form, true)).not.toHaveProperty("reservations");
    // What somebody typed stays.
    const typed = { ...first, form: { ...first.form, reservations: { kubernetes: true, max_pods: "32" } } };
    expect(toScenario(draftOnNode(typed, "n2", running, gke).form, true).reservations).toEqual({
      kubernetes: true,
      max_pods: 32,
    });
  });
  it("leaves out what was excluded on the node before: names mean nothing on another one", () => {
    const excluded = { nodeId: "n1", form: { ...initialForm(), exclude: ["kafka"] } };
    expect(draftOnNode(excluded, "n2", running, null).form.exclude).toBeUndefined();
  });
});

describe("broughtDraft", () => {
  const empty: Draft = { form: initialForm(), nodeId: null };
  const running = { databases: [{ name: "orders", engine: "postgresql", runs_as: "postgresql:main" }] };
  const isBrought = (value: Draft, runs: typeof running | null) => {
    const brought = broughtDraft(value.nodeId, runs);
    return brought !== null && sameDraft(value, brought);
  };

  it("is the empty form or a node as it runs, and no edit of either", () => {
    expect(isBrought(empty, null)).toBe(true);
    const chosen = draftOnNode(empty, "n-1", running, null);
    expect(isBrought(chosen, running)).toBe(true);
    const edited = chosen.form.databases.map((database) => ({ ...database, name: "other" }));
    expect(isBrought({ form: { ...chosen.form, databases: edited }, nodeId: "n-1" }, running)).toBe(false);
    expect(isBrought({ form: { ...initialForm(), databases: [] }, nodeId: null }, null)).toBe(false);
  });

  it("is the next node as it runs, after another one was chosen without an edit", () => {
    const other = { databases: [{ name: "mysql", engine: "mysql", runs_as: "mysql:main" }] };
    const chosen = draftOnNode(empty, "n-1", running, null);
    expect(isBrought(draftOnNode(chosen, "n-2", other, running), other)).toBe(true);
  });

  it("is not known where what the node runs is not", () => {
    expect(broughtDraft("n-1", null)).toBeNull();
  });
});

it("says what of a running database was edited, with what holds today", () => {
  const running = {
    name: "main",
    engine: "postgresql",
    settings: { shared_buffers: "128MB" },
    runs_as: "postgresql:main",
  };
  expect(changesToRunning({ ...running, name: "renamed" }, running)).toEqual([]);
  const edited = { ...running, version: "17", settings: { shared_buffers: "1GB", huge_pages: "on" } };
  expect(changesToRunning(edited, running)).toEqual([
    "version not set",
    "shared_buffers = 128MB",
    "huge_pages not set",
  ]);
  expect(changesToRunning({ ...running, settings: {} }, running)).toEqual(["shared_buffers = 128MB"]);
});
