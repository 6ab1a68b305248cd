import { describe, expect, it } from "vitest";
import type { Plan } from "@/api/types";
import { inputsTitle } from "./inputs-card";

const plan = (sources: string[], unknowns: string[] = [], states: string[] = []): Plan =>
  ({
    gains: [
      { instance: "a", inputs: sources.map((source, at) => ({ name: `input ${at}`, value: "1", source })) },
    ],
    instances: [],
    pools: [],
    ledger: { parts: [] },
    unknowns,
    findings: states.map((state) => ({ state })),
  }) as unknown as Plan;

describe("inputsTitle", () => {
  it("says that all is known only where nothing is assumed or unknown", () => {
    expect(inputsTitle(plan(["measured", "given"], [], ["ok", "wrong"]))).toBe(
      "Every input is measured, observed or given.",
    );
  });
  it("counts an unknown row like an unknown note", () => {
    expect(inputsTitle(plan(["measured", "unknown"]))).toBe(
      "The plan rests on 0 assumed inputs, and 1 is unknown.",
    );
    expect(inputsTitle(plan(["assumed", "unknown"], ["memory of workload a"]))).toBe(
      "The plan rests on 1 assumed input, and 2 are unknown.",
    );
  });
  it("never claims that all is known above an unknown finding", () => {
    expect(inputsTitle(plan(["measured"], [], ["ok", "unknown"]))).toBe(
      "Every input is measured, observed or given, but 1 finding is unknown.",
    );
  });
});
