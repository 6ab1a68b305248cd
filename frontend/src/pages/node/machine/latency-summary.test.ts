import { describe, expect, it } from "vitest";
import type { RunCurve } from "@/api/types";
import { latencyFinding, latencySavings, layoutsOf } from "./latency-summary";

function curve(
  backing: string,
  kind: string,
  pageBytes: number,
  points: [number, number][],
  spread = 1,
): RunCurve {
  return {
    section: "latency",
    beside_backing: null,
    name: backing,
    x_name: "footprint_bytes",
    backing,
    backing_kind: kind,
    page_bytes: pageBytes,
    layout: "random_64b",
    footprint_bytes: null,
    granted_fraction: 1,
    status: "ok",
    reason: null,
    points: points.map(([x, ns]) => ({
      x,
      ns_min: ns,
      ns_p10: ns - spread,
      ns_p50: ns,
      ns_p90: ns + spread,
      ns_mad: null,
      batches: 25,
      dropped: 0,
    })),
  };
}

const base = curve("4K", "base", 4096, [
  [2 ** 20, 5],
  [2 ** 30, 130],
]);
const huge = curve("2M", "hugetlb", 2 ** 21, [
  [2 ** 20, 5],
  [2 ** 30, 95],
]);

const plain = (text: string) => text.replaceAll("\u00a0", " ");

describe("latencySavings", () => {
  it("compares at the largest footprint that both have", () => {
    const short = curve("1G", "hugetlb", 2 ** 30, [[2 ** 20, 4]], 0.1);
    expect(
      latencySavings([base, huge, short]).map(({ footprintBytes, deltaNs }) => [footprintBytes, deltaNs]),
    ).toEqual([
      [2 ** 30, -35],
      [2 ** 20, -1],
    ]);
  });
  it("says nothing without base pages", () => {
    expect(latencySavings([huge])).toEqual([]);
    expect(latencyFinding([huge])).toBe("What does a page size buy on this node?");
  });
});

describe("latencyFinding", () => {
  it("names the best size with its saving", () => {
    expect(plain(latencyFinding([base, huge]))).toBe(
      "2M pages make a read over 1 GiB 35.0 ns faster than base pages (−26.9 %).",
    );
  });
  it("is as exact as the paired interval", () => {
    const paired = {
      backing: "2M",
      layout: "random_64b",
      x: 2 ** 30,
      delta_ns: -35.26,
      ci95_low_ns: -52.1,
      ci95_high_ns: -18.4,
    };
    expect(plain(latencyFinding([base, huge], [paired]))).toBe(
      "2M pages make a read over 1 GiB 35 ns faster than base pages (95 % interval 18 to 52 ns).",
    );
  });
  it("does not call a difference inside the noise a gain", () => {
    const noisy = curve("2M", "hugetlb", 2 ** 21, [[2 ** 30, 128]], 6);
    expect(plain(latencyFinding([base, noisy]))).toBe("2M is not clearly faster than base pages over 1 GiB.");
  });
  it("says what was not measured", () => {
    const thp = curve("THP", "thp", 2 ** 21, [[2 ** 30, 128]], 6);
    const missing = (backing: string, pageBytes: number): RunCurve => ({
      ...curve(backing, "hugetlb", pageBytes, []),
      status: "stopped",
      reason: "the time limit was reached",
    });
    const stopped = [missing("2M", 2 ** 21), missing("1G", 2 ** 30)];
    expect(plain(latencyFinding([base, thp, ...stopped]))).toBe(
      "THP is not clearly faster than base pages over 1 GiB; 2M and 1G were not measured.",
    );
    expect(plain(latencyFinding([base, huge, missing("1G", 2 ** 30)]))).toMatch(/; 1G was not measured\.$/);
  });
  it("names the footprint of each comparison", () => {
    const thp = curve("THP", "thp", 2 ** 21, [[2 ** 30, 128]], 6);
    const short = curve("2M", "hugetlb", 2 ** 21, [[2 ** 20, 5]]);
    expect(plain(latencyFinding([base, thp, short]))).toBe(
      "THP is not clearly faster than base pages over 1 GiB, 2M not over 1 MiB.",
    );
  });
  it("prefers a clear gain to a larger one inside the noise", () => {
    const noisy = curve("1G", "hugetlb", 2 ** 30, [[2 ** 30, 90]], 60);
    expect(latencyFinding([base, huge, noisy])).toMatch(/^2M pages make a read/);
  });
});

it("lists the layouts once", () => {
  expect(layoutsOf([{ ...base, layout: "line_per_page" }, base, huge])).toEqual([
    "random_64b",
    "line_per_page",
  ]);
});
