import { describe, expect, it } from "vitest";
import type { Scenario } from "@/api/types";
import { type Draft, draftOnNode, edit, redo, startHistory, startingDraft, undo } from "./draft";
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
    const chosen = draftOnNode({ form: initialForm(), nodeId: null }, "n1", running);
    expect(chosen.nodeId).toBe("n1");
    expect(toScenario(chosen.form, true).databases).toEqual(running.databases);
    // Off the node nothing runs, and the server would refuse the name.
    expect(JSON.stringify(toScenario(chosen.form, false))).not.toContain("runs_as");
  });
  it("keeps a database that somebody typed, and drops those of the node before", () => {
    const first = draftOnNode(draft("8GB"), "n1", running);
    expect(names(first)).toEqual(["orders", "main"]);
    expect(names(draftOnNode(first, "n2", {}))).toEqual(["main"]);
    expect(names(draftOnNode(draftOnNode(draft(""), "n1", running), "n2", null))).toEqual(["main"]);
  });
  it("plans a node with a kubelet as one of Kubernetes, and the next one as that one is", () => {
    const gke = { ...running, reservations: { kubernetes: true, provider: "gke" } };
    const first = draftOnNode({ form: initialForm(), nodeId: null }, "n1", gke);
    expect(toScenario(first.form, true).reservations).toEqual({ kubernetes: true, provider: "gke" });
    const second = draftOnNode(first, "n2", running);
    expect(toScenario(second.form, true)).not.toHaveProperty("reservations");
    // What somebody typed stays.
    const typed = { ...first, form: { ...first.form, reservations: { kubernetes: true, max_pods: "32" } } };
    expect(toScenario(draftOnNode(typed, "n2", running).form, true).reservations).toEqual({
      kubernetes: true,
      max_pods: 32,
    });
  });
  it("leaves out what was excluded on the node before: names mean nothing on another one", () => {
    const excluded = { nodeId: "n1", form: { ...initialForm(), exclude: ["kafka"] } };
    expect(draftOnNode(excluded, "n2", running).form.exclude).toBeUndefined();
  });
});
