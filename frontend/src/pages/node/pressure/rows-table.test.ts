import { describe, expect, it } from "vitest";
import type { RowMeasurement } from "@/api/types";
import {
  changeToBase,
  rowsFamilies,
  rowsFinding,
  rowsPivot,
  unmeasuredBackings,
  workerRows,
} from "./rows-table";

const measurement = (over: Partial<RowMeasurement>): RowMeasurement => ({
  row_bytes: 128,
  keys: "uniform",
  read: "row",
  workers: 8,
  mode: "threads",
  backing: "4K",
  page_bytes: 4096,
  segment_bytes: 2 ** 28,
  rows_per_second: 1000,
  ns_p50: null,
  ns_p90: null,
  ns_p99: null,
  vm_pte_bytes_per_process: null,
  vm_pte_bytes_total: null,
  first_touch_seconds: null,
  status: "ok",
  reason: null,
  ...over,
});

describe("rowsPivot", () => {
  const pivot = rowsPivot([
    measurement({ backing: "1G", page_bytes: 2 ** 30, rows_per_second: null, reason: "the pool has 0" }),
    measurement({ backing: "2M", page_bytes: 2 ** 21, rows_per_second: 1370 }),
    measurement({}),
    measurement({ workers: 1 }),
    measurement({ backing: "THP", page_bytes: 2 ** 21, workers: 1, rows_per_second: 900 }),
  ]);
  it("has a line a way of reading and a column a backing, base pages first", () => {
    expect(pivot.backings).toEqual(["4K", "THP", "2M", "1G"]);
    expect(pivot.cases.map(({ workers }) => workers)).toEqual([1, 8]);
    expect(rowsPivot([measurement({ read: "constructor" })]).cases[0]?.name).toContain("constructor, ");
  });
  it("sorts rows by their width", () => {
    const widths = [16384, 128, 8192].map((row_bytes) => measurement({ row_bytes }));
    expect(rowsPivot(widths).cases.map(({ rowBytes }) => rowBytes)).toEqual([128, 8192, 16384]);
  });
  it("compares within one way of reading, and an unknown stays unknown", () => {
    const [one, eight] = pivot.cases;
    expect(one && changeToBase(one, "THP", pivot.base)).toBeCloseTo(-0.1);
    expect(eight && changeToBase(eight, "2M", pivot.base)).toBeCloseTo(0.37);
    expect(eight && changeToBase(eight, "1G", pivot.base)).toBeNull();
    expect(one && changeToBase(one, "2M", pivot.base)).toBeNull();
  });
  it("names the backing with the best median", () => {
    expect(rowsFinding(pivot)).toBe(
      "2M pages read +37.0\u00a0% rows per second against 4K pages, in the median of 1 case.",
    );
    const thp = (workers: number, rate: number) => [
      measurement({ workers }),
      measurement({ workers, backing: "THP", page_bytes: 2 ** 21, rows_per_second: rate }),
    ];
    expect(rowsFinding(rowsPivot([...thp(1, 1200), ...thp(2, 1300), ...thp(4, 12_000)]))).toBe(
      "THP reads +30.0\u00a0% rows per second against 4K pages, in the median of 3 cases.",
    );
    expect(rowsFinding(rowsPivot([measurement({})]))).toBe(
      "How many rows per second does each page size read?",
    );
  });
});

it("names the backings that no case was measured on", () => {
  const pivot = rowsPivot([
    measurement({}),
    measurement({ backing: "1G", page_bytes: 2 ** 30, rows_per_second: null, reason: "no free page" }),
    measurement({ backing: "2M", page_bytes: 2 ** 21, rows_per_second: null }),
    measurement({ backing: "2M", page_bytes: 2 ** 21, mode: "processes" }),
  ]);
  expect(unmeasuredBackings(pivot).map(({ backing, reason }) => [backing, reason])).toEqual([
    ["1G", "no free page"],
  ]);
});

describe("a kernel with base pages of 64K", () => {
  const pivot = rowsPivot([
    measurement({ backing: "64K", page_bytes: 65536 }),
    measurement({ backing: "2M", page_bytes: 2 ** 21, rows_per_second: 1100 }),
  ]);
  it("is compared with 64K, not with 4K", () => {
    expect(pivot.base).toBe("64K");
    expect(rowsFinding(pivot)).toBe(
      "2M pages read +10.0\u00a0% rows per second against 64K pages, in the median of 1 case.",
    );
  });
});

describe("rows over workers", () => {
  const pivot = rowsPivot([
    measurement({ workers: 8, rows_per_second: 7000, vm_pte_bytes_total: 8 * 2 ** 20 }),
    measurement({ workers: 1, rows_per_second: 1000, vm_pte_bytes_total: 2 ** 20 }),
    measurement({ workers: 8, backing: "2M", page_bytes: 2 ** 21, rows_per_second: 9000 }),
    measurement({ row_bytes: 8192, workers: 8 }),
  ]);
  it("is one chart per way of reading, the one with most counts of workers first", () => {
    expect(rowsFamilies(pivot).map(({ cases }) => cases.length)).toEqual([2, 1]);
  });
  it("leaves a count that was not measured unknown, which breaks the line", () => {
    const [family] = rowsFamilies(pivot);
    const rows = family ? workerRows(family, pivot.backings, (found) => found.rows_per_second) : [];
    expect(rows).toEqual([
      { x: 1, values: { "4K": 1000, "2M": null } },
      { x: 8, values: { "4K": 7000, "2M": 9000 } },
    ]);
  });
});
