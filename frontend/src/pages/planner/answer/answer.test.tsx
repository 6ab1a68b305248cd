import { cleanup, screen, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { describe, expect, it, vi } from "vitest";
import type { PlanPreview } from "@/api/types";
import { planOf, previewOf, verdictOf } from "@/test/plan-fixture";
import { renderWithTheme } from "@/test/render";
import { Answer } from "./answer";
import { answerTexts, bestGain, pageChanges } from "./plan-figures";

function show(shown: PlanPreview, isStale = false) {
  const changes = { onUseFit: vi.fn(), onAnswer: vi.fn() };
  renderWithTheme(
    <Answer shown={shown} isStale={isStale} next={<button type="button">Keep</button>} {...changes} />,
  );
  return { ...changes, answer: screen.getByRole("region", { name: "The answer" }) };
}

describe("the answer", () => {
  it("says the decision, then the verdict, then a row each, then what is next", () => {
    const { answer } = show(previewOf());
    const order = ["Reserve 4,268", "Do it", "Costs", "Buys", "Shortage", "How sure", "Keep"];
    const at = order.map((text) => answer.textContent?.indexOf(text) ?? -1);
    expect(at).toEqual([...at].sort((a, b) => a - b));
    expect(at).not.toContain(-1);
    expect(answer.textContent).toContain("Available to programs: 20 GiB today, 12 GiB under the plan.");
  });

  it("credits no database with what it has today", () => {
    const text = "orders: already on huge pages, no speed change.";
    const { answer } = show(
      previewOf({}, { on_huge_pages: ["orders"], gains: [text], reason: "12 GiB go back." }),
    );
    expect(answer.textContent).toContain("No speed change");
    expect(answer.textContent).toContain(text);
    expect(answer.textContent).not.toContain("throughput likely");
  });

  it("knows that a database on base pages stays as fast, and does not know a gain that nobody computed", () => {
    const on = (size: number | null) =>
      show(previewOf({ gains: [], instances: [{ name: "orders", page_bytes: size }] })).answer.textContent;
    expect(on(null)).toContain("No speed change");
    cleanup();
    expect(on(2 * 2 ** 20)).toContain("Nothing that can be said");
  });

  it("holds the gains of many databases behind a line, and of none says nothing", async () => {
    const gains = Array.from({ length: 20 }, (_, index) => `db${index}: +4.9 % throughput likely.`);
    const { answer } = show(previewOf({}, { gains }));
    expect(answer.textContent).toContain("db3:");
    expect(answer.textContent).not.toContain("db4:");
    await userEvent.click(within(answer).getByRole("button", { name: "16 more" }));
    expect(answer.textContent).toContain("db19:");
    cleanup();
    expect(show(previewOf({ instances: [] }, { gains: [] })).answer.textContent).not.toContain("Buys");
  });

  it("writes zero as zero and unknown as the word", () => {
    const pools = (present: number | null) =>
      planOf()
        .pools.slice(1, 2)
        .map((pool) => ({ ...pool, present_pages: present }));
    const { answer } = show(previewOf({ pools: pools(0) }));
    expect(answer.textContent).toMatch(/0 → 2,134/);
    expect(answer.textContent).not.toContain("unknown");
    cleanup();
    expect(show(previewOf({ pools: pools(null) })).answer.textContent).toMatch(/unknown → 2,134/);
  });

  it("takes the colour of the verdict, not of a fault that the plan cures", () => {
    const findings = [
      { state: "wrong", code: "pool_short", subject: "x", title: "t", reason: "", fix: null, evidence: [] },
    ];
    const { answer } = show(previewOf({ findings }));
    expect(answer.getAttribute("data-state")).toBe("ok");
  });

  it("is not red where there is nothing to change, unless memory runs out", () => {
    const pools = planOf().pools.map((pool) => ({ ...pool, present_pages: pool.pages }));
    const { answer } = show(
      previewOf({ pools }, { answer: "dont", reason: "The node has the planned pools." }),
    );
    expect(answer.getAttribute("data-state")).toBe("ok");
    expect(answer.textContent).toContain("Nothing to change");
    cleanup();
    const risk = { ...planOf().risk, meets_policy: false, probability: { low: 0.2, likely: 0.3, high: 0.4 } };
    const risky = show(previewOf({ pools, risk }, { answer: "dont" })).answer;
    expect(risky.getAttribute("data-state")).toBe("wrong");
    expect(risky.textContent).toContain("above 1\u00a0%");
  });

  it("calls a risk unknown where it may be within the policy or above it", () => {
    const risk = { ...planOf().risk, meets_policy: false, probability: { low: 0, likely: 0.1, high: 0.5 } };
    const { answer } = show(previewOf({ risk }, { answer: "not_enough_known" }));
    expect(answer.textContent).toContain("not known to 1\u00a0% yet");
    expect(answerTexts(planOf({ risk }), verdictOf()).risk).toBe("unknown, accepted 1\u00a0%");
  });

  it("asks for the biggest unknown in place, with its effect", async () => {
    const question = {
      instance: "orders",
      field: "active_connections",
      assumed: "64",
      low: 1.02,
      high: 1.07,
      effect: "If it is 64, the gain is +2.0 to +7.0 % instead of +1.0 to +9.0 %.",
    };
    const { answer, onAnswer } = show(previewOf({}, { question }));
    expect(answer.textContent).toContain(question.effect);
    // The field shows what the sentence speaks of.
    expect(within(answer).getByRole("textbox").getAttribute("placeholder")).toBe(question.assumed);
    await userEvent.type(within(answer).getByRole("textbox"), "32");
    await userEvent.click(within(answer).getByRole("button", { name: "Use" }));
    expect(onAnswer).toHaveBeenCalledWith("orders", "active_connections", "32");
  });

  it("offers what would fit, and promises nothing for what does not", async () => {
    const shortfall = {
      constraint: "memory",
      shortfall_bytes: 2 ** 30,
      numa_node: null,
      reason: "1 GiB is missing.",
      options: [
        {
          kind: "pool",
          text: "A pool of 4GB fits.",
          instance: "orders",
          setting: "shared_buffers",
          value: "4GB",
        },
      ],
    };
    const { answer, onUseFit } = show(
      previewOf({ feasible: false, fits: false, shortfall }, { answer: "dont" }),
    );
    expect(answer.textContent?.replaceAll("\u00a0", " ")).toContain("1 GiB short");
    expect(answer.textContent).toContain("Nothing: it does not fit");
    await userEvent.click(within(answer).getByRole("button", { name: "Use 4GB" }));
    expect(onUseFit).toHaveBeenCalledWith("orders", "shared_buffers", "4GB");
  });
});

describe("its figures", () => {
  it("sum NUMA nodes and sort sizes", () => {
    expect(pageChanges(planOf()).map(({ pageBytes, now, planned }) => [pageBytes, now, planned])).toEqual([
      [2 * 2 ** 20, 1024, 4268],
      [2 ** 30, 0, 2],
    ]);
  });
  it("leave out what is on huge pages", () => {
    expect(bestGain(planOf(), verdictOf())?.instance).toBe("orders");
    expect(bestGain(planOf(), verdictOf({ on_huge_pages: ["orders"] }))).toBeUndefined();
    expect(answerTexts(planOf(), verdictOf({ on_huge_pages: ["orders"] })).benefit).toBe("none");
  });
  it("say unknown where a kept plan of an older version has no verdict", () => {
    expect(answerTexts(planOf(), null).confidence).toBe("unknown");
  });
});
