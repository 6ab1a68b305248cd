import { expect, it } from "vitest";
import type { Finding } from "@/api/types";
import { clusterTitle, type FoundNode, nodesOf, verdictOf, worstOf } from "./cluster-words";

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
const finding = (state: Finding["state"]): Finding => ({
  code: "time_bomb",
  state,
  subject: "shop/pg-0",
  title: `It is ${state}`,
  reason: "",
  fix: "Mend it.",
  evidence: [],
});
const withFindings = (of: FoundNode, ...states: Finding["state"][]) => ({
  ...of,
  findings: states.map(finding),
});
const unknown = node("unknown", { fits: null });
const misfit = node("misfit", { fits: false });
const unplanned = node("unplanned", { fits: null, headline: null, not_planned_because: "no memory" });
const empty = node("empty", { fits: null, headline: null, databases: [] });

it.each([
  ["one that fits", node("a"), ["ok Fits"]],
  [
    "the same with something wrong",
    withFindings(node("a"), "wrong", "attention"),
    ["ok Fits", "wrong 1 wrong"],
  ],
  ["the same with attention", withFindings(node("a"), "attention"), ["ok Fits", "attention 1 attention"]],
  ["one that does not", withFindings(misfit, "wrong", "wrong"), ["wrong Does not fit"]],
  ["a size that nobody read", withFindings(unknown, "unknown"), ["unknown Fit not known"]],
  [
    "the same with something wrong",
    withFindings(unknown, "wrong"),
    ["unknown Fit not known", "wrong 1 wrong"],
  ],
  ["a node without a plan", unplanned, ["unknown Not planned"]],
  ["a node without a database", empty, ["ok Nothing to reserve"]],
] as const)("says of %s what is known, and what is wrong beside it", (_, of, badges) => {
  expect(verdictOf(of).map(({ state, text }) => `${state} ${text}`)).toEqual(badges);
});

it("names the worst of what the badge counts, and nothing where it counts nothing", () => {
  const [both, fine, no] = nodesOf({
    nodes: [withFindings(node("a"), "attention", "wrong"), withFindings(node("b"), "unknown", "ok"), misfit],
  }).sort((a, b) => a.name.localeCompare(b.name));
  expect(both && worstOf(both)).toBe("shop/pg-0: It is wrong. Mend it.");
  expect(fine && worstOf(fine)).toBeNull();
  expect(no && worstOf({ ...no, findings: [finding("wrong")] })).toBeNull();
});

it.each([
  [[node("a")], "The huge pages of its databases fit its node."],
  [[node("a"), empty], "The huge pages of its databases fit all 2 nodes."],
  [
    [withFindings(node("a"), "wrong", "wrong")],
    "The huge pages of its databases fit its node; something else is wrong on it.",
  ],
  [
    [node("a"), withFindings(empty, "wrong")],
    "The huge pages of its databases fit all 2 nodes; something else is wrong on 1.",
  ],
  [[node("a"), unknown], "Whether its databases fit is not known of 1 of 2 nodes."],
  [[unknown, unplanned], "Whether its databases fit is not known of 2 nodes."],
  [[node("a"), misfit], "1 of 2 nodes does not fit."],
  [[misfit, { ...misfit }, unknown], "2 of 3 nodes do not fit; of 1 it is not known."],
])("never counts a node among those that fit of which it is not known", (nodes, title) => {
  expect(clusterTitle(nodes)).toBe(title);
});

it("lists what does not fit first, then what is wrong, then what is not known", () => {
  const nodes = [node("fine"), unknown, withFindings(node("wrong"), "wrong"), misfit];
  expect(nodesOf({ nodes }).map(({ name }) => name)).toEqual(["misfit", "wrong", "unknown", "fine"]);
});
