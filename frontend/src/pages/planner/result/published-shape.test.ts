import { describe, expect, it } from "vitest";
import type { PublishedResult } from "@/api/types";
import { GIB } from "@/lib/units";
import { bandAt, placedPool, publishedSeries, publishedShape } from "./published-shape";

const row = (workload: string, gib: number, a: number, b: number): PublishedResult => ({
  id: `${workload}-${gib}`,
  source: "somebody",
  year: 2016,
  system: null,
  ram: null,
  workload,
  engine: "MySQL",
  page_size_a: "16K",
  page_size_b: "4K",
  metric: "tpm",
  value_a: a,
  value_b: b,
  gain_percent: null,
  concurrency: null,
  buffer_pool: `${gib} GiB`,
  kind: "database_block_size",
  verified: true,
  notes: null,
});

/** One series rises evenly up to 40 GiB, the other up to 80 GiB. */
const ITEMS = [10, 20, 40, 80].map((gib) => row("oltp", gib, Math.min(gib, 40), gib));

describe("published shapes", () => {
  it("takes each column of values as a series of its own, and leaves out other kinds", () => {
    expect(publishedSeries([...ITEMS, { ...row("x", 5, 1, 1), kind: "page_size" }])).toHaveLength(2);
    expect(publishedSeries(ITEMS.slice(0, 3))).toEqual([]);
  });
  it("counts pools in shares of the one that reaches 99 % of the best", () => {
    const shape = publishedShape(ITEMS);
    expect(shape?.shapes.map(({ points }) => points.map(({ share }) => share))).toEqual([
      [0.25, 0.5, 1, 2],
      [0.125, 0.25, 0.5, 1],
    ]);
    expect(shape?.shapes[1]?.points.map(({ reached }) => reached)).toEqual([0.125, 0.25, 0.5, 1]);
  });
  it("says nothing below the smallest pool that all of them have", () => {
    const shape = publishedShape(ITEMS);
    if (!shape) throw new Error("no shape");
    expect(bandAt(shape.shapes, 0.2)).toBeNull();
    expect(bandAt(shape.shapes, 0.5)).toMatchObject({ low: 0.5, middle: 0.5, high: 0.5 });
    expect(placedPool(shape, 2 * GIB, 40 * GIB)).toEqual({ here: null, oneMoreGib: null });
  });
  it("places a pool by the working set, with what one GiB more brings", () => {
    const shape = publishedShape(ITEMS);
    if (!shape) throw new Error("no shape");
    const placed = placedPool(shape, 20 * GIB, 40 * GIB);
    expect(placed.here?.middle).toBeCloseTo(0.5);
    expect(placed.oneMoreGib?.low).toBeCloseTo(1 / 40);
    expect(shape.knee[0]).toBeCloseTo(0.95, 1);
  });
  it("has no shape without published series", () => {
    expect(publishedShape([])).toBeNull();
  });
});
