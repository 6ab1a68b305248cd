import { describe, expect, it } from "vitest";
import { choicePoints, formatPoints, whyWithoutPoints } from "./choice-points";

const WHY = "gain +4.97, memory +0.04 (256 KiB rounding waste), operation -0.10 points";
const chosen = { page_bytes: 2 ** 21, pages: 77, feasible: true, score: 4.91, why: WHY };
const rest = "77 pages hold 154 MiB in one mapping. The runner-up, 1G, loses by 1.81 points.";

describe("choicePoints", () => {
  it("reads the planner's points", () => {
    expect(choicePoints(WHY)).toEqual({ gain: 4.97, memory: 0.04, operation: -0.1, waste: "256 KiB" });
  });
  it("gives none for any other reason", () => {
    expect(choicePoints("no pool: no gain, no waste, nothing to keep in step")).toBeNull();
    expect(choicePoints("the pool of 1G holds no page")).toBeNull();
  });
});

describe("whyWithoutPoints", () => {
  it("leaves out only what the comparison repeats", () => {
    expect(whyWithoutPoints({ chosen, why: `2M: ${WHY}. ${rest}` })).toBe(`2M: ${rest}`);
  });
  it("keeps every other sentence", () => {
    const why = `2M is what the scenario asks for. ${rest}`;
    expect(whyWithoutPoints({ chosen, why })).toBe(why);
    expect(whyWithoutPoints({ chosen: null, why })).toBe(why);
  });
});

it("writes points with their sign, and none for zero", () => {
  expect([4.97, -0.1, -0.001].map(formatPoints)).toEqual(["+4.97", "−0.10", "0.00"]);
});
