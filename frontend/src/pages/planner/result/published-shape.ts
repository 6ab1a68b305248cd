import type { PublishedResult } from "@/api/types";
import { GIB } from "@/lib/units";

/** One published series: throughput by buffer pool size, on one device and at one block size of the database. */
interface Series {
  label: string;
  points: { poolBytes: number; throughput: number }[];
}

/** Share of the best throughput over the pool's share of what holds the working set. */
interface Shape {
  label: string;
  points: { share: number; reached: number }[];
}

export interface ShapePoint {
  /** The pool over the working set. */
  share: number;
  low: number;
  middle: number;
  high: number;
}

const MIN_POINTS = 4;
/** The pool that reaches this share of the best is taken to hold the working set. */
const HOLDS_ALL = 0.99;
const STEPS = 40;
const LAST_SHARE = 1.25;

/** The published series over buffer pool sizes: rows that differ in the pool alone belong together. */
export function publishedSeries(items: readonly PublishedResult[]): Series[] {
  const series = new Map<string, Series>();
  for (const item of items) {
    const gib = /^\s*(\d+(?:\.\d+)?)\s*GiB\s*$/.exec(item.buffer_pool ?? "")?.[1];
    if (item.kind !== "database_block_size" || gib === undefined) continue;
    for (const [value, block] of [
      [item.value_a, item.page_size_a],
      [item.value_b, item.page_size_b],
    ] as const) {
      if (typeof value !== "number") continue;
      const label = `${item.source}: ${item.workload}, ${block}`;
      const known = series.get(label) ?? { label, points: [] };
      known.points.push({ poolBytes: Number(gib) * GIB, throughput: value });
      series.set(label, known);
    }
  }
  return [...series.values()]
    .filter(({ points }) => points.length >= MIN_POINTS)
    .map(({ label, points }) => ({
      label,
      points: points.toSorted((a, b) => a.poolBytes - b.poolBytes),
    }));
}

/** A series without its units: the pool that reaches 99 % of the best throughput is 1. */
function shapeOf({ label, points }: Series): Shape {
  const best = Math.max(...points.map(({ throughput }) => throughput));
  const whole = points.find(({ throughput }) => throughput >= HOLDS_ALL * best)?.poolBytes ?? 1;
  return {
    label,
    points: points.map(({ poolBytes, throughput }) => ({
      share: poolBytes / whole,
      reached: throughput / best,
    })),
  };
}

/** Straight between the points; null below the smallest pool that was published, the last value above the largest. */
function reachedAt({ points }: Shape, share: number): number | null {
  const next = points.findIndex((point) => point.share >= share);
  const after = points[next];
  if (!after) return points.at(-1)?.reached ?? null;
  if (after.share === share) return after.reached;
  const before = points[next - 1];
  if (!before) return null;
  const part = (share - before.share) / (after.share - before.share);
  return before.reached + part * (after.reached - before.reached);
}

/** The band of all shapes at one share of the working set; null where not all of them say something. */
export function bandAt(shapes: readonly Shape[], share: number): ShapePoint | null {
  const values = shapes.map((shape) => reachedAt(shape, share));
  if (values.length === 0 || values.some((value) => value === null)) return null;
  const sorted = (values as number[]).toSorted((a, b) => a - b);
  const at = (index: number) => sorted[index] as number;
  const half = (sorted.length - 1) / 2;
  return {
    share,
    low: at(0),
    middle: (at(Math.floor(half)) + at(Math.ceil(half))) / 2,
    high: at(sorted.length - 1),
  };
}

export interface PublishedShape {
  shapes: readonly Shape[];
  band: ShapePoint[];
  /** Shares of the working set at which a published series reaches 95 % of its best: the least and the most. */
  knee: readonly [low: number, high: number];
}

/** What published measurements say of the shape; null without any. */
export function publishedShape(items: readonly PublishedResult[]): PublishedShape | null {
  const shapes = publishedSeries(items).map(shapeOf);
  const band = Array.from({ length: STEPS + 1 }, (_, step) =>
    bandAt(shapes, (step / STEPS) * LAST_SHARE),
  ).filter((point): point is ShapePoint => point !== null);
  const knees = shapes.map((shape) => {
    const found = band.find(({ share }) => (reachedAt(shape, share) ?? 0) >= 0.95);
    return found?.share ?? 1;
  });
  if (band.length === 0) return null;
  return { shapes, band, knee: [Math.min(...knees), Math.max(...knees)] };
}

/** The pool on the published shapes, and what one GiB more brings there, each as shares of the best throughput. */
export function placedPool(shape: PublishedShape, poolBytes: number, workingSetBytes: number) {
  const here = bandAt(shape.shapes, poolBytes / workingSetBytes);
  const next = bandAt(shape.shapes, (poolBytes + GIB) / workingSetBytes);
  if (!here || !next) return { here, oneMoreGib: null };
  const gains = shape.shapes.map(
    (one) =>
      (reachedAt(one, (poolBytes + GIB) / workingSetBytes) ?? 0) -
      (reachedAt(one, poolBytes / workingSetBytes) ?? 0),
  );
  return { here, oneMoreGib: { low: Math.min(...gains), high: Math.max(...gains) } };
}
