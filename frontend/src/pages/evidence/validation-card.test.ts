import { expect, it } from "vitest";
import type { BacktestRow, ValidationRun } from "@/api/types";
import { partTitle } from "./backtest-groups";
import { machineLabel, measuredOf, validationTitle } from "./validation-card";

it("takes the figure over all pairs, and the mean of the rounds only where there is none", () => {
  expect(measuredOf({ measured_percent: 4.5, measured_rounds_percent: [5, 6] })).toBe(4.5);
  expect(measuredOf({ measured_percent: null, measured_rounds_percent: [5, 6] })).toBe(5.5);
});

it("counts the runs that miss in its title", () => {
  const run = (verdict: ValidationRun["verdict"]) => ({ verdict }) as ValidationRun;
  expect(validationTitle([run("inside"), run("within_noise"), run("outside")])).toContain(
    "1 of 3 gains lie inside the range written down before, 1 outside",
  );
});

it("counts only what could be predicted", () => {
  const row = (status: string, predicted: boolean) =>
    ({
      status,
      published_percent: 1,
      predicted_percent: predicted ? { low: 0, likely: 1, high: 2 } : null,
    }) as BacktestRow;
  expect(partTitle([row("inside", true), row("outside", true), row("no_inputs", false)], "results")).toBe(
    "1 of 2 results lie inside the predicted range.",
  );
  expect(partTitle([row("no_inputs", false)], "results")).toBe("1 results: none could be predicted.");
});

it("says of each machine how its runs came out", () => {
  const items = (["inside", "outside", "inside"] as const).map((verdict) => ({ machine: "Zen 4", verdict }));
  expect(machineLabel("Zen 4", [...items, { machine: "Ice Lake", verdict: "outside" }])).toBe(
    "Zen 4: 2 of 3 inside, 0 within the noise, 1 outside",
  );
});
