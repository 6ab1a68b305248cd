import { expect, it } from "vitest";
import { selectionChips } from "./filter-chips";

it("has a chip for each condition, also for those without a field", () => {
  const chips = selectionChips(
    { q: "db", label: ["env=prod", "role"], group: "abc", synthetic: true, stale: false },
    undefined,
  );
  expect(chips.map(({ text }) => text)).toEqual([
    "name: db",
    "one group of like nodes",
    "reporting",
    "synthetic",
    "label: env=prod",
    "label: role",
  ]);
});

it("takes one label away and leaves the others", () => {
  const [first, second] = selectionChips({ label: ["env=prod", "role"] }, undefined);
  expect(first?.without).toEqual({ label: ["role"] });
  expect(second?.without).toEqual({ label: ["env=prod"] });
  expect(selectionChips({ label: ["role"] }, undefined)[0]?.without).toEqual({ label: undefined });
});

it("takes a finding and its state away together", () => {
  expect(selectionChips({ finding: "pool_idle", state: "attention" }, undefined)[0]?.without).toEqual({
    finding: undefined,
    state: undefined,
  });
  expect(selectionChips({}, undefined)).toEqual([]);
});
