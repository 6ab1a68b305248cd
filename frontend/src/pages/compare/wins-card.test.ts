import { describe, expect, test } from "vitest";
import type { SizeWins } from "@/api/types";
import { winsTitle } from "./wins-card";

function size(backing: string, wins: number, cases: number): SizeWins {
  const share = wins / cases;
  return {
    backing,
    cases,
    wins,
    share,
    lowest_share: share,
    mean_delta_percent: backing === "tie" ? null : -10,
  };
}

describe("who wins", () => {
  test("a size that wins most cases is named with its mean", () => {
    const sizes = [size("2M", 6, 10), size("THP", 2, 10), size("tie", 2, 10)];
    expect(winsTitle({ cases: 10, runs: 1, sizes })).toBe(
      "2M pages win 60\u00a0% of 10 cases over 1 run; their mean time against base pages is −10.0\u00a0%.",
    );
  });

  test("ties are said first where they are more than any size's wins", () => {
    const sizes = [size("THP", 1, 10), size("tie", 9, 10)];
    expect(winsTitle({ cases: 10, runs: 2, sizes })).toBe(
      "No page size is clearly fastest in 90\u00a0% of 10 cases over 2 runs; THP is in 10\u00a0%.",
    );
  });

  test("without a win or a case nobody is named", () => {
    expect(winsTitle({ cases: 4, runs: 1, sizes: [size("2M", 0, 4), size("tie", 4, 4)] })).toBe(
      "No page size is clearly fastest in any of 4 cases over 1 run.",
    );
    expect(winsTitle({ cases: 0, runs: 1, sizes: [] })).toMatch(/^No point of these runs/);
  });
});
