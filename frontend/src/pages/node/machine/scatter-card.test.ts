import { expect, it } from "vitest";
import type { RunCurve } from "@/api/types";
import { scatterSeries } from "./scatter-card";

const curve = (backing: string, beside: string): RunCurve => ({
  section: "scatter",
  beside_backing: beside,
  name: `scatter ${backing}, one line in each ${beside}`,
  x_name: "hot_lines",
  backing,
  backing_kind: backing === "4K" ? "base" : "hugetlb",
  page_bytes: backing === "4K" ? 4096 : 2 ** 30,
  layout: "scatter",
  footprint_bytes: null,
  granted_fraction: 1,
  status: "ok",
  reason: null,
  points: [],
});
const plain = (text: string) => text.replaceAll("\u00a0", " ");

it("tells the base pages beside one size from those beside another", () => {
  const series = ["THP", "2M", "1G"].map((beside) => scatterSeries(curve("4K", beside), beside));
  expect(series.map(({ label, short, marker }) => [plain(label), short, marker])).toEqual([
    ["4K base pages, one line per THP", "4K, THP", "square"],
    ["4K base pages, one line per 2M", "4K, 2M", "triangle"],
    ["4K base pages, one line per 1G", "4K, 1G", "diamond"],
  ]);
  expect(scatterSeries(curve("1G", "1G"), "x").short).toBe("1G");
});
