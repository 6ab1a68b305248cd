import { expect, it } from "vitest";
import { clusterTitle, type FoundNode, nodesOf, verdictOf } from "./cluster-words";

const node = (name: string, change: Partial<FoundNode> = {}): FoundNode => ({
  name,
  fits: true,
  mem_total_bytes: 2 ** 36,
  not_planned_because: null,
  headline: "Reserve 1 page of 2M",
  shortfall: null,
  databases: [{}],
  findings: [],
  ...change,
});
const finding = (state: string) => ({ state, why: `it is ${state}` });
const unknown = node("unknown", { fits: null });
const misfit = node("misfit", { fits: false });
const unplanned = node("unplanned", { fits: null, headline: null, not_planned_because: "no memory" });
const empty = node("empty", { fits: null, headline: null, databases: [] });

it.each([
  ["one that fits", node("a"), "ok", "Fits"],
  ["one that does not", misfit, "wrong", "Does not fit"],
  ["a size that nobody read", unknown, "unknown", "Fit not known"],
  ["the same with attention", { ...unknown, findings: [finding("attention")] }, "unknown", "Fit not known"],
  ["the same with something wrong", { ...unknown, findings: [finding("wrong")] }, "wrong", "1 wrong"],
  ["a node without a plan", unplanned, "unknown", "Not planned"],
  ["a node without a database", empty, "ok", "Nothing to reserve"],
] as const)("says of %s what is known", (_, of, state, text) => {
  expect(verdictOf(of as FoundNode)).toEqual({ state, text });
});

it.each([
  [[node("a")], "The huge pages of its databases fit its node."],
  [[node("a"), empty], "The huge pages of its databases fit all 2 nodes."],
  [[node("a"), unknown], "Whether its databases fit is not known of 1 of 2 nodes."],
  [[unknown, unplanned], "Whether its databases fit is not known of 2 nodes."],
  [[node("a"), misfit], "1 of 2 nodes does not fit."],
  [[misfit, { ...misfit }, unknown], "2 of 3 nodes do not fit; of 1 it is not known."],
])("never counts a node among those that fit of which it is not known", (nodes, title) => {
  expect(clusterTitle(nodes)).toBe(title);
});

it("lists what does not fit first, then what is wrong, then what is not known", () => {
  const nodes = [node("fine"), unknown, node("wrong", { findings: [finding("wrong")] }), misfit];
  expect(nodesOf({ nodes }).map(({ name }) => name)).toEqual(["misfit", "wrong", "unknown", "fine"]);
});
