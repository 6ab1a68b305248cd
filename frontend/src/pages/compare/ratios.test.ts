import { describe, expect, it } from "vitest";
import type { RunComparison, RunCurve } from "@/api/types";
import { runLetter } from "./compare-rows";
import { formatRatio, ratioRows, verdict, winnerOf } from "./ratios";

const plain = (text: string) => text.replaceAll("\u00a0", " ");
const point = (x: number, ns: number | null, half = 1) =>
  ({
    x,
    ns_p50: ns,
    ns_p10: ns === null ? null : ns - half,
    ns_p90: ns === null ? null : ns + half,
  }) as RunCurve["points"][number];
const compared = (backing: string, pageBytes: number, curves: (RunCurve["points"] | null)[]) => ({
  section: "latency",
  name: `latency ${backing}`,
  x_name: "footprint_bytes",
  backing,
  layout: "packed",
  curves: curves.map(
    (points) =>
      points &&
      ({
        backing,
        backing_kind: backing === "4K" ? "base" : "hugetlb",
        page_bytes: pageBytes,
        layout: "packed",
        points,
      } as RunCurve),
  ),
});
const comparison = (...curves: ReturnType<typeof compared>[]): RunComparison =>
  ({ runs: [], geometries: [], pressures: [], curves }) as unknown as RunComparison;
const MIB = 2 ** 20;

describe("winnerOf", () => {
  const time = (ns: number, half: number) => ({ ns, low: ns - half, high: ns + half });
  it("needs an interval below every other's", () => {
    expect(winnerOf([time(10, 1), time(20, 1)])).toBe(0);
    expect(winnerOf([time(10, 6), time(20, 6)])).toBeNull();
    expect(winnerOf([time(30, 1), time(10, 1), time(11.5, 1)])).toBeNull();
  });
  it("is nobody where only one run was measured", () => {
    expect(winnerOf([time(10, 1), null])).toBeNull();
  });
});

describe("ratioRows", () => {
  it("compares at the largest footprint that two runs share, base pages first", () => {
    const rows = ratioRows(
      comparison(
        compared("2M", 2 * MIB, [[point(MIB, 5)], [point(MIB, 6)]]),
        compared("4K", 4096, [
          [point(MIB, 10), point(8 * MIB, 40)],
          [point(MIB, 20), point(8 * MIB, null)],
        ]),
        compared("1G", 1024 * MIB, [[point(MIB, 5)], null]),
      ),
      "packed",
    );
    expect(rows.map(({ short, footprintBytes, winner }) => [short, footprintBytes, winner])).toEqual([
      ["4K", MIB, 0],
      ["2M", MIB, null],
    ]);
    expect(rows[0]?.ratios).toEqual([null, { likely: 2, low: 19 / 11, high: 21 / 9 }]);
  });
});

describe("verdict", () => {
  it("says who wins and by how much, and counts ties", () => {
    const rows = ratioRows(
      comparison(
        compared("4K", 4096, [[point(MIB, 10)], [point(MIB, 5)]]),
        compared("2M", 2 * MIB, [[point(MIB, 5)], [point(MIB, 5)]]),
      ),
      "packed",
    );
    expect(plain(verdict(rows, runLetter))).toBe(
      "B wins 1 of 2 page sizes: with 4K over 1 MiB it takes −50.0 % time against the next; 1 is a tie.",
    );
  });
  it("says when nobody does", () => {
    const rows = ratioRows(comparison(compared("4K", 4096, [[point(MIB, 10)], [point(MIB, 10)]])), "packed");
    expect(verdict(rows, runLetter)).toBe("Nobody wins: the intervals overlap for the one page size.");
    expect(verdict([], runLetter)).toBe("These runs have no latency in common, so nobody wins.");
  });
});

it("writes a ratio so that one that is not one does not look like it", () => {
  expect([1, 1.157, 0.998, 2].map(formatRatio)).toEqual(["×1.00", "×1.16", "×0.998", "×2.00"]);
});
