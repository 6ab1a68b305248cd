import { expect, it } from "vitest";
import { type DatabaseWalks, walkSentence } from "./walk-sentence";

const counters: DatabaseWalks["counters"] = {
  counted_at: "2026-11-24T15:00:00Z",
  status: "ok",
  reason: null,
  event_set: null,
  walk_cycles_are: null,
  seconds: null,
  running_fraction: null,
  overhead_fraction: null,
  user_walk_fraction: null,
  kernel_walk_fraction: null,
  walk_fraction: null,
  cycles: null,
  instructions: null,
  data_walks: null,
  instruction_walks: null,
  walk_cycles: null,
  l2_hits: null,
};
const walks = (over: Partial<DatabaseWalks["counters"]>): DatabaseWalks => ({
  key: "postgresql@5432",
  engine: "postgresql",
  pid: 1,
  counters: { ...counters, ...over },
});

it("says the share of cycles that wait for page walks", () => {
  expect(walkSentence(walks({ walk_fraction: 0.1183 }))).toBe(
    "11.8\u00a0% of this server's cycles wait for page walks.",
  );
  expect(walkSentence(walks({ walk_fraction: 0 }))).toBe(
    "0\u00a0% of this server's cycles wait for page walks.",
  );
});

it("counts walks where their cycles are not counted", () => {
  expect(walkSentence(walks({ walk_fraction: null, instructions: 8e9, data_walks: 1e7 }))).toBe(
    "1.25 data page walks per 1,000 instructions; this processor does not count the cycles that they take.",
  );
});

it("says why nothing was counted", () => {
  const reason = "no PMU here: ask the provider for a virtual PMU";
  expect(walkSentence(walks({ status: "unsupported", reason }))).toBe(
    `Page walks are not counted: ${reason}.`,
  );
  expect(walkSentence(walks({ status: "failed" }))).toBe("Page walks are not counted: failed.");
});
