import { describe, expect, it } from "vitest";
import type { Granule, TlbLevel } from "@/api/types";
import { entriesText, fractureSentence, kindLabel, tlbPicture, waysLabel } from "./tlb-model";

const level = (over: Partial<TlbLevel>): TlbLevel => ({
  level: 1,
  kind: "data",
  page_bytes: 4096,
  entries: 96,
  entries_min: null,
  entries_max: null,
  ways: "full",
  source: "measured",
  confidence: "high",
  note: null,
  ...over,
});

const granule: Granule = {
  backing: "THP",
  backing_kind: "thp",
  page_bytes: 2097152,
  granule_bytes: 4096,
  status: "fractured",
};

describe("tlbPicture", () => {
  const model = tlbPicture({
    levels: [
      level({}),
      level({ page_bytes: 2097152, entries: 32 }),
      level({ level: 2, kind: "unified", entries: 4095, source: "cpuid", ways: 16 }),
      level({ kind: "instr", entries: 64 }),
      level({ level: 2, kind: "unified", page_bytes: 2 ** 30, entries: null, source: null }),
    ],
    granules: [granule, { ...granule, backing: "2M", status: "ok" }],
    penalties: [
      { level: "l2_hit", page_bytes: 4096, ns: 2.3, ns_min: null, ns_max: null, cycles: 7 },
      { level: "walk", page_bytes: 4096, ns: 11, ns_min: null, ns_max: null, cycles: 33 },
    ],
    disagreements: [
      { level: 1, page_bytes: 4096, field: "entries", values: { cpuid: 64, measured: 96 }, text: null },
    ],
  });
  it("has a column a page size and a row a data level", () => {
    expect(model.pageSizes).toEqual([4096, 2097152, 2 ** 30]);
    expect(model.rows.map((row) => row.label)).toEqual(["L1 data", "L2 unified"]);
    expect(model.rows[0]?.cells[2]).toBeNull();
  });
  it("takes a size that is not listed for absent only where a whole list of the level is known", () => {
    // L2 is listed by CPUID, which names every size that has entries; L1 was measured size by size.
    expect(model.rows.map((row) => row.isListedWhole)).toEqual([false, true]);
  });
  it("makes widths follow the logarithm of the entries", () => {
    expect(model.rows[1]?.cells[0]?.width).toBe(1);
    expect(model.rows[0]?.cells[1]?.width).toBeCloseTo(Math.log2(33) / 12);
  });
  it("leaves unknown entries without width and reach", () => {
    const box = model.rows[1]?.cells[2];
    expect(box?.width).toBeNull();
    expect(box?.reachBytes).toBeNull();
    expect(box?.source).toBe("unknown");
  });
  it("charges an L1 miss the next level and a last-level miss the walk", () => {
    expect(model.rows[0]?.cells[0]?.penalty?.ns).toBe(2.3);
    expect(model.rows[1]?.cells[0]?.penalty?.ns).toBe(11);
    expect(model.rows[0]?.cells[0]?.disagrees?.values).toEqual({ cpuid: 64, measured: 96 });
  });
  it("keeps only fractured granules", () => {
    expect(model.fractured).toEqual([granule]);
    expect(fractureSentence(granule)).toContain("covers 4\u00a0KiB here");
    expect(fractureSentence({ ...granule, granule_bytes: null })).toContain("unknown");
  });
});

it("writes entries and ways", () => {
  expect(entriesText(level({ entries_min: 95, entries_max: 97 }))).toBe("96 (95 to 97)");
  expect(entriesText(level({ entries: null }))).toBe("unknown");
  expect(waysLabel("full")).toBe("fully associative");
  expect(waysLabel(6)).toBe("6-way");
  expect(waysLabel(null)).toBeNull();
  expect(kindLabel("constructor")).toBe("constructor");
});
