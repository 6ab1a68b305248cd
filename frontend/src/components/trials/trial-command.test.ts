import { expect, test } from "vitest";
import type { Gain } from "@/api/types";
import { GIB } from "@/lib/units";
import { planOf } from "@/test/plan-fixture";
import { trialCommand } from "./trial-command";

function gainWith(inputs: Record<string, string>, change: Partial<Gain> = {}): Gain {
  const [gain] = planOf().gains;
  if (!gain) throw new Error("the fixture has a gain");
  const terms = Object.entries(inputs).map(([name, value]) => ({
    name,
    value,
    source: "given" as const,
    reference: null,
  }));
  return { ...gain, backing: "2M", backing_kind: "hugetlb", inputs: terms, ...change };
}

const INPUTS = {
  row_bytes: "128",
  working_set_bytes: `${GIB}`,
  "private page tables in use": "8",
};

test("the command has the shape that the plan counts with", () => {
  expect(trialCommand(gainWith(INPUTS), "postgresql", "https://plan.example")).toBe(
    "hugeplan trial postgresql --row-bytes 128 --clients 8 --data-gib 1 --page-sizes 2M,4K --to https://plan.example",
  );
});

test("large data is cut to what still matches", () => {
  const command = trialCommand(
    gainWith({ ...INPUTS, working_set_bytes: `${100 * GIB}` }),
    "postgresql",
    "https://p",
  );
  expect(command).toContain("--data-gib 25 ");
  expect(
    trialCommand(gainWith({ ...INPUTS, working_set_bytes: `${3 * GIB}` }), "postgresql", "https://p"),
  ).toContain("--data-gib 2 ");
});

test("an engine of one process does not count clients by page tables", () => {
  const one = gainWith({ ...INPUTS, "private page tables in use": "1" });
  expect(trialCommand(one, "mariadb", "https://p")).toBe(
    "hugeplan trial mariadb --row-bytes 128 --data-gib 1 --page-sizes 2M,4K --to https://p",
  );
});

test("no command where no trial would match", () => {
  expect(trialCommand(gainWith(INPUTS), "oracle", "https://p")).toBeNull();
  expect(trialCommand(gainWith({ row_bytes: "128" }), "postgresql", "https://p")).toBeNull();
  const measured = { trial_id: "a", text: "measured here on 23 Nov 2026", predicted: null };
  expect(trialCommand(gainWith(INPUTS, { measured_here: measured }), "postgresql", "https://p")).toBeNull();
});
