import { expect, it } from "vitest";
import type { RunCurve } from "@/api/types";
import { firstLoss, scatterSeries } from "./scatter-card";

const curve = (backing: string, beside: string): RunCurve => ({
  section: "scatter",
  beside_backing: beside,
  name: `scatter ${backing}, one line in each ${beside}`,
  x_name: "hot_lines",
  backing,
  backing_kind: backing === "4K" ? "base" : "hugetlb",
  page_bytes: backing === "4K" ? 4096 : 2 ** 30,
  layout: "scatter",
  granted_fraction: 1,
  status: "ok",
  reason: null,
  points: [],
});
const plain = (text: string) => text.replaceAll("\u00a0", " ");

it("tells the base pages beside one size from those beside another", () => {
  const series = ["THP", "2M", "1G"].map((beside) => scatterSeries(curve("4K", beside), beside));
  expect(series.map(({ label, short, marker }) => [plain(label), short, marker])).toEqual([
    ["4 KiB base pages, one line per THP", "4K, THP", "square"],
    ["4 KiB base pages, one line per 2M", "4K, 2M", "triangle"],
    ["4 KiB base pages, one line per 1G", "4K, 1G", "diamond"],
  ]);
  expect(scatterSeries(curve("1G", "1G"), "x").short).toBe("1G");
});

it("names the smallest count from which the size lost at every point, not the one that was confirmed", () => {
  const points = (values: [number, number][]) =>
    values.map(([x, ns]) => ({ x, ns_p50: ns })) as RunCurve["points"];
  const base = {
    ...curve("4K", "1G"),
    points: points([
      [64, 4],
      [128, 4],
      [181, 4],
      [256, 4],
    ]),
  };
  const huge = {
    ...curve("1G", "1G"),
    points: points([
      [64, 5],
      [128, 3],
      [181, 6],
      [256, 9],
    ]),
  };
  expect(firstLoss([base, huge], "1G", 256)).toBe(181);
  expect(firstLoss([huge], "1G", 256)).toBe(256);
});
