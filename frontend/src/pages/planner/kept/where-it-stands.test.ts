import { expect, it } from "vitest";
import { keptOf } from "@/test/plan-fixture";
import { sentence } from "./where-it-stands";

const stale = [{ what: "memory", was: "64 GiB", now: "32 GiB" }];

it.each([
  ["an approved plan", { state: "approved", node_id: "n" }, /put it in force/],
  ["one made without a node", { state: "approved", node_id: null, sampled_at: null }, /^Approved\. No node/],
  [
    "one whose node was removed",
    { state: "approved", node_id: null, sampled_at: "x" },
    /^Its node was removed/,
  ],
  [
    "a draft whose node was removed",
    { state: "draft", node_id: null, sampled_at: "x" },
    /^Its node was removed/,
  ],
  ["a draft made by hand", { state: "draft", node_id: null, sampled_at: null }, /^A draft/],
  ["one whose node has changed", { state: "approved", node_id: "n", stale }, /plan it again/],
  ["a draft whose node has changed", { state: "draft", node_id: "n", stale }, /plan it again/],
  [
    "a stale one whose node was removed",
    { state: "proposed", node_id: null, sampled_at: "x", stale },
    /^Its node was removed/,
  ],
  ["one that has a successor", { state: "superseded", node_id: "n", stale }, /^A later plan/],
] as const)("says of %s what can be done about it", (_, change, said) => {
  expect(sentence(keptOf(change as Parameters<typeof keptOf>[0]))).toMatch(said);
});
