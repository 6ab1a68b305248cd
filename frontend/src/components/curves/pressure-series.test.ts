import { describe, expect, it } from "vitest";
import type { PressurePoint } from "@/api/types";
import {
  footprintSeries,
  isClear,
  linesBesideWait,
  pressureBackings,
  pressureReading,
  pressureRows,
} from "./pressure-series";

const MIB = 2 ** 20;

const point = (
  footprint: number,
  lines: number,
  saving: number | null,
  over: Partial<PressurePoint> = {},
): PressurePoint => ({
  backing: "2M",
  backing_kind: "hugetlb",
  page_bytes: 2 * MIB,
  footprint_bytes: footprint * MIB,
  lines_between: lines,
  wait_ns: 0,
  period_ns: 500,
  base_ns_p50: 300,
  ns_p50: saving === null ? null : 300 - saving,
  delta_ns: saving === null ? null : -saving,
  ci95_low_ns: saving === null ? null : -saving - 8,
  ci95_high_ns: saving === null ? null : -saving + 8,
  pairs: 12,
  ...over,
});

const points = [
  point(32, 0, 3.4),
  point(32, 16, 10),
  point(32, 16, 64, { wait_ns: 8000 }),
  point(32, 256, 66.8),
  point(512, 0, 20.2),
  point(512, 16, 92.5),
  point(512, 256, 145.1),
  point(2048, 256, null),
];
const twoMib = { short: "2M", kind: "hugetlb", pageBytes: 2 * MIB } as const;
const plain = (text: string | null) => text?.replaceAll("\u00a0", " ");

describe("pressureRows", () => {
  it("turns differences into savings, with the interval's ends in order", () => {
    expect(pressureRows(points, "lines").find(({ x }) => x === 256)).toEqual({
      x: 256,
      values: { [32 * MIB]: 66.8, [512 * MIB]: 145.1, [2048 * MIB]: null },
      ranges: { [32 * MIB]: [58.8, 74.8], [512 * MIB]: [137.1, 153.1] },
    });
  });
  it("keeps waits out of the lines, and shows them beside the same number of lines", () => {
    expect(pressureRows(points, "lines").map(({ x }) => x)).toEqual([0, 16, 256]);
    expect(linesBesideWait(points)).toBe(16);
    expect(pressureRows(points, "wait").map(({ x, values }) => [x, values])).toEqual([
      [0, { [32 * MIB]: 10 }],
      [8000, { [32 * MIB]: 64 }],
    ]);
    expect(footprintSeries(points, "wait", twoMib).map(({ key }) => key)).toEqual([String(32 * MIB)]);
    expect(linesBesideWait(points.filter(({ wait_ns }) => wait_ns === 0))).toBeNull();
  });
});

describe("series", () => {
  it("has one line a footprint, told apart by marker and shade of the page size's hue", () => {
    const series = footprintSeries(points, "lines", twoMib);
    expect(series.map(({ label, marker }) => [plain(label), marker])).toEqual([
      ["Over 32 MiB", "circle"],
      ["Over 512 MiB", "square"],
      ["Over 2 GiB", "triangle"],
    ]);
    expect(new Set(series.map(({ color }) => color)).size).toBe(3);
  });
  it("lists page sizes in the order of all charts, and none without a value", () => {
    const thp = point(32, 0, 5, { backing: "THP", backing_kind: "thp" });
    const gib = point(32, 0, null, { backing: "1G", page_bytes: 1024 * MIB });
    expect(pressureBackings([gib, ...points, thp]).map(({ short }) => short)).toEqual(["THP", "2M"]);
  });
});

describe("pressureReading", () => {
  const reading = (some: readonly PressurePoint[]) => plain(pressureReading(some, twoMib));
  it("sets the saving under pressure beside the chase's", () => {
    expect(reading(points)).toBe(
      "2M pages save 67 to 145 ns per access when a program reads 256 other lines between two accesses; a plain pointer chase shows only 3 to 20 ns.",
    );
  });
  it("calls a difference clear only when an interval leaves out zero", () => {
    expect(isClear(point(32, 0, 8.1))).toBe(true);
    expect(isClear(point(32, 0, 7.9))).toBe(false);
    expect(reading([point(32, 0, 3), point(32, 1024, 90)])).toBe(
      "2M pages save 90 ns per access when a program reads 1,024 other lines between two accesses; a plain pointer chase shows no clear difference.",
    );
    expect(reading([point(32, 64, 4)])).toBe(
      "2M pages make no clear difference when a program reads 64 other lines between two accesses.",
    );
  });
  it("says cost where pages are slower, and names THP as one thing", () => {
    const slower = [point(32, 0, -12), point(32, 256, -40)];
    expect(reading(slower)).toBe(
      "2M pages cost 40 ns per access when a program reads 256 other lines between two accesses; a plain pointer chase shows a cost of 12 ns.",
    );
    expect(plain(pressureReading([point(32, 0, 30)], { short: "THP", kind: "thp" }))).toBe(
      "THP saves 30 ns per access in a plain pointer chase.",
    );
  });
  it("says nothing without a value", () => {
    expect(reading([point(32, 0, null)])).toBeUndefined();
    expect(reading([])).toBeUndefined();
  });
});
