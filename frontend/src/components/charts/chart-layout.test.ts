import { describe, expect, it } from "vitest";
import {
  axisPosition,
  axisValue,
  drawnValues,
  endLabels,
  largestValue,
  linearTicks,
  log2Ticks,
  placeReferences,
  smallestValue,
  timeTicks,
  valueTicks,
  xDomain,
} from "./chart-layout";
import type { ChartRow, ChartSeries } from "./chart-types";

const series = (key: string): ChartSeries => ({
  key,
  label: key,
  short: key,
  color: "red",
  marker: "circle",
});

describe("axes", () => {
  it("puts the labels of a time axis at round times, however long the span", () => {
    const begin = Date.UTC(2026, 10, 17, 11, 58, 7);
    const ticks = (hours: number, width = 640) => timeTicks([begin, begin + hours * 3_600_000], width);
    const texts = (hours: number) => ticks(hours).map((at) => new Date(at).toISOString().slice(5, 16));
    expect(texts(7 * 24)).toEqual(["11-19T00:00", "11-21T00:00", "11-23T00:00"]);
    expect(texts(24)).toEqual(["11-17T12:00", "11-17T18:00", "11-18T00:00", "11-18T06:00"]);
    expect(texts(1)).toEqual(["11-17T12:00", "11-17T12:15", "11-17T12:30", "11-17T12:45"]);
    // A year has labels at Mondays.
    expect(new Set(ticks(400 * 24).map((at) => new Date(at).getUTCDay()))).toEqual(new Set([1]));
    for (const hours of [0.01, 0.5, 5, 50, 500, 5000, 50_000])
      for (const width of [200, 640, 1400]) {
        expect(ticks(hours, width).length).toBeLessThanOrEqual(width / 110 + 1);
      }
    expect(timeTicks([begin, begin], 640)).toEqual([]);
  });

  it("puts footprints on their logarithm", () => {
    const rows: ChartRow[] = [65536, 2 ** 30].map((x) => ({ x, values: {} }));
    expect(xDomain(rows, { scale: "log2" })).toEqual([16, 30]);
    expect(xDomain([], { scale: "log2" })).toEqual([0, 1]);
  });
  it("labels whole powers of two and thins them when narrow", () => {
    expect(log2Ticks([16, 20], 1000)).toEqual([16, 17, 18, 19, 20]);
    expect(log2Ticks([16, 30], 320)).toEqual([16, 19, 22, 25, 28]);
  });
  it("labels sizes on a linear axis at steps of a power of two", () => {
    const gib = 2 ** 30;
    expect(linearTicks([5 * gib, 115 * gib], 800).map((at) => at / gib)).toEqual([
      16, 32, 48, 64, 80, 96, 112,
    ]);
    expect(linearTicks([5 * gib, 115 * gib], 220).map((at) => at / gib)).toEqual([64]);
  });
  it("starts values at zero and ends above the largest", () => {
    expect(valueTicks(130)).toEqual([0, 50, 100, 150]);
    expect(valueTicks(9.3)).toEqual([0, 2, 4, 6, 8, 10]);
    expect(valueTicks(0)).toEqual([0, 1]);
  });
  it("counts the ends of an interval", () => {
    const rows = [{ x: 1, values: { a: 5, b: null }, ranges: { a: [-4, 9] as const } }];
    expect(largestValue(rows, ["a", "b"])).toBe(9);
    expect(smallestValue(rows, ["a", "b"])).toBe(-4);
    expect(smallestValue([{ x: 1, values: { a: 5 } }], ["a"])).toBe(0);
  });
  it("goes below zero as far as values do, with zero among the ticks", () => {
    expect(valueTicks(130, 5, -8)).toEqual([0, 50, 100, 150]);
    expect(valueTicks(130, 5, -70)).toEqual([-50, 0, 50, 100, 150]);
    expect(valueTicks(0, 5, -9.3)).toEqual([-8, -6, -4, -2, 0]);
  });
  it("has a place for zero on a symlog axis, and finds back to the x", () => {
    const axis = { scale: "symlog", knee: 8 } as const;
    const lines = [0, 16, 64, 256, 1024];
    const positions = lines.map((x) => axisPosition(x, axis));
    expect(positions[0]).toBe(0);
    const gaps = positions.slice(1).map((position, index) => position - (positions[index] ?? 0));
    expect(Math.max(...gaps) / Math.min(...gaps)).toBeLessThan(1.3);
    expect(positions.map((position) => axisValue(position, axis))).toEqual(lines);
  });
});

describe("labels at the end of lines", () => {
  it("keeps a gap between lines that end together", () => {
    const rows: ChartRow[] = [
      { x: 1, values: { a: 50, b: 51, c: 10 } },
      { x: 2, values: { a: 50, b: 51, c: 10 } },
    ];
    const labels = endLabels(rows, [series("a"), series("b"), series("c")], [0, 100], 200, 15);
    expect(labels.map((label) => label.key)).toEqual(["b", "a", "c"]);
    expect(labels[0]?.y).toBeCloseTo(98);
    expect(labels[1]?.y).toBeCloseTo(113);
    expect(labels[2]?.y).toBeCloseTo(180);
  });
  it("stands beside the line's own last point", () => {
    const rows: ChartRow[] = [
      { x: 1, values: { a: 50, b: 50 } },
      { x: 2, values: { a: 50, b: null } },
    ];
    const labels = endLabels(rows, [series("a"), series("b")], [0, 100], 200, 15);
    expect(labels.map(({ key, x, y }) => [key, x, y])).toEqual([
      ["a", 2, 100],
      ["b", 1, 100],
    ]);
  });
  it("stays inside the plot when lines end at the bottom", () => {
    const rows: ChartRow[] = [{ x: 1, values: { a: 0, b: 1 } }];
    const labels = endLabels(rows, [series("a"), series("b")], [0, 100], 200, 15);
    expect(labels.map((label) => label.y)).toEqual([185, 200]);
  });
});

describe("reference labels", () => {
  it("moves a label that would cover another to the next lane", () => {
    const placed = placeReferences(
      [
        { x: 10, label: "L1 reach 384 KiB" },
        { x: 20, label: "L2 reach 8 MiB" },
        { x: 590, label: "near the edge" },
      ],
      (x) => x,
      600,
    );
    expect(placed.map((reference) => reference.lane)).toEqual([0, 1, 0]);
    expect(placed[2]?.side).toBe("left");
  });
});

describe("drawnValues", () => {
  const row = (x: number, a?: number | null): ChartRow => ({ x, values: a === undefined ? {} : { a } });
  const drawn = (rows: ChartRow[]) => {
    const values = drawnValues(rows, ({ values: { a } }) => a, { scale: "log2" });
    return rows.map((one) => values.get(one) ?? null);
  };
  it("breaks the line over an unknown value", () => {
    expect(drawn([row(1, 4), row(2, null), row(4, 8)])).toEqual([4, null, 8]);
    expect(drawn([row(1, 4), row(2), row(4, null), row(8, 8)])).toEqual([4, null, null, 8]);
  });
  it("draws on over what was not measured there, and not past the ends", () => {
    expect(drawn([row(0.5), row(1, 4), row(2), row(4, 8), row(8)])).toEqual([null, 4, 6, 8, null]);
  });
});
