import { expect, it } from "vitest";
import type { NodeHistory } from "@/api/types";
import { pageSizeColor } from "@/lib/page-size";
import { historyRows, historyTitle, memorySeries } from "./history-card";

const GIB = 2 ** 30;
const at = (minute: number) => new Date(Date.UTC(2026, 10, 22, 12, minute)).toISOString();
const point = (minute: number, available: number | null) => ({
  start_at: at(minute),
  samples: 1,
  mem_total_bytes_max: 64 * GIB,
  mem_available_bytes_min: available,
  mem_available_bytes_mean: available,
  page_tables_bytes_max: 2 ** 20,
  anon_huge_pages_bytes_max: null,
  hugetlb_bytes_min: null,
  hugetlb_bytes_max: null,
  pool_idle_bytes_min: null,
  pool_idle_bytes_max: null,
  ordinary_bytes_max: null,
});
const history = (over: Partial<NodeHistory> = {}): NodeHistory => ({
  node_id: "n",
  start_at: at(0),
  end_at: at(59),
  width_seconds: 60,
  source: "samples",
  points: [point(0, 10 * GIB), point(1, 8 * GIB), point(40, 9 * GIB)],
  gaps: [{ start_at: at(2), end_at: at(40) }],
  ...over,
});

it("shows a silence as a gap instead of a straight line", () => {
  const rows = historyRows(history());
  expect(rows.map(({ values }) => values.available)).toEqual([10, 8, null, 9]);
  expect(rows[2]?.values.page_tables).toBeNull();
});

it("leaves unknown memory unknown, and page tables in a unit of their own", () => {
  const [first] = historyRows(history({ points: [point(0, null)], gaps: [] }));
  expect(first?.values).toEqual({ available: null, pools: null, idle: null, page_tables: 1 });
});

it("says the lowest memory and how long nothing is known", () => {
  const plain = (text: string) => text.replaceAll("\u00a0", " ");
  expect(plain(historyTitle(history()))).toBe(
    "At least 8 GiB stayed available; 1 gap of 38 min in all, of which nothing is known.",
  );
  expect(plain(historyTitle(history({ gaps: [] })))).toBe("At least 8 GiB stayed available.");
});

it("draws pools in the colour of their page size, and those of several sizes in none", () => {
  const pools = (...sizes: [number, number][]) =>
    sizes.map(([page_bytes, nr_hugepages]) => ({ page_bytes, nr_hugepages, free_hugepages: null }));
  const colors = (...sizes: [number, number][]) =>
    memorySeries(pools(...sizes) as never)
      .filter(({ key }) => key !== "available")
      .map(({ color }) => color);
  const [two, one] = [pageSizeColor(2 * 2 ** 20, "hugetlb"), pageSizeColor(GIB, "hugetlb")];
  expect(colors([2 * 2 ** 20, 0], [GIB, 8])).toEqual([one, one]);
  expect(colors([2 * 2 ** 20, 5], [GIB, 0])).toEqual([two, two]);
  for (const color of [...colors([2 * 2 ** 20, 5], [GIB, 8]), ...colors()])
    expect([one, two]).not.toContain(color);
});
