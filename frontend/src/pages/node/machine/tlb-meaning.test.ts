import { describe, expect, it } from "vitest";
import type { Granule, Penalty, TlbLevel } from "@/api/types";
import { tlbPicture } from "@/components/tlb-picture/tlb-model";
import { fracturedSentence, tlbMeaning } from "./tlb-meaning";

const MIB = 2 ** 20;
const plain = (text: string | null) => text?.replaceAll("\u00a0", " ") ?? null;

const level = (pageBytes: number, entries: number): TlbLevel => ({
  level: 2,
  kind: "unified",
  page_bytes: pageBytes,
  entries,
  entries_min: null,
  entries_max: null,
  ways: 8,
  source: "cpuid",
  confidence: "high",
  note: null,
});
const granule = (granuleBytes: number | null, status: string): Granule => ({
  backing: "2M",
  backing_kind: "hugetlb",
  page_bytes: 2 * MIB,
  granule_bytes: granuleBytes,
  status,
});
const penalty = (pageBytes: number, ns: number | null): Penalty => ({
  level: "walk",
  page_bytes: pageBytes,
  ns,
  ns_min: null,
  ns_max: null,
  cycles: null,
});
const levels = [level(4096, 2048), level(2 * MIB, 2048)];
const geometry = (granules: Granule[], penalties: Penalty[]) => ({
  effective_granule: granules,
  penalty: penalties,
});
const meaning = (granules: Granule[], penalties: Penalty[]) =>
  plain(
    tlbMeaning(
      tlbPicture({ levels, granules, penalties, disagreements: [] }),
      geometry(granules, penalties),
      4096,
    ),
  );

describe("a fractured node", () => {
  it("says by how much walks get shorter, from the penalties of the picture, and that reach does not grow", () => {
    expect(
      plain(
        fracturedSentence(
          geometry([granule(4096, "fractured")], [penalty(4096, 30), penalty(2 * MIB, 20)]),
          4096,
        ),
      ),
    ).toBe(
      "With 2M pages walks get 33.3 % shorter (30.0 ns to 20.0 ns); reach does not grow: one entry covers 4 KiB of the page.",
    );
  });
  it("claims no figure that was not measured", () => {
    const said = plain(fracturedSentence(geometry([granule(4096, "fractured")], [penalty(4096, 30)]), 4096));
    expect(said).toContain("was not measured");
    expect(said).not.toContain("%");
    expect(plain(fracturedSentence(geometry([granule(null, "fractured")], []), 4096))).toContain(
      "how far reach grows is unknown",
    );
  });
  it("is not told apart where base pages are as large as the granule", () => {
    expect(plain(fracturedSentence(geometry([granule(65536, "fractured")], []), 4096))).toContain(
      "reach grows to 64 KiB per entry",
    );
    expect(plain(fracturedSentence(geometry([granule(65536, "fractured")], []), 65536))).toContain(
      "reach does not grow",
    );
  });
  it("has a picture that agrees: its 2M entries reach no further than base pages", () => {
    const model = tlbPicture({
      levels,
      granules: [granule(4096, "fractured")],
      penalties: [],
      disagreements: [],
    });
    expect(model.rows[0]?.cells.map((cell) => cell?.reachBytes)).toEqual([8 * MIB, 8 * MIB]);
    const unknown = tlbPicture({
      levels,
      granules: [granule(null, "fractured")],
      penalties: [],
      disagreements: [],
    });
    expect(unknown.rows[0]?.cells.map((cell) => cell?.reachBytes)).toEqual([8 * MIB, null]);
    expect(meaning([granule(4096, "fractured")], [penalty(4096, 30)])).toBe(
      "Random reads over more than 8 MiB miss the L2 TLB with 4K pages, and each miss costs 30.0 ns for the page walk. No larger page size reaches further here.",
    );
  });
});

it("claims no reach for a larger size that was not measured where a smaller one is fractured", () => {
  const granules = [granule(4096, "fractured")];
  const model = tlbPicture({
    levels: [...levels, level(1024 * MIB, 64)],
    granules,
    penalties: [],
    disagreements: [],
  });
  expect(model.rows[0]?.cells.map((cell) => cell?.reachBytes)).toEqual([8 * MIB, 8 * MIB, null]);
  expect(plain(tlbMeaning(model, geometry(granules, []), 4096))).toBe(
    "Random reads over more than 8 MiB miss the L2 TLB with 4K pages, and each miss costs the page walk, whose cost was not measured. How far 1G pages reach here was not measured.",
  );
  const measured = [...granules, { ...granule(1024 * MIB, "ok"), page_bytes: 1024 * MIB, backing: "1G" }];
  const whole = tlbPicture({
    levels: [...levels, level(1024 * MIB, 64)],
    granules: measured,
    penalties: [],
    disagreements: [],
  });
  expect(plain(tlbMeaning(whole, geometry(measured, []), 4096))).toContain("1G pages reach 64 GiB");
});

it("says how much further a whole page reaches", () => {
  expect(meaning([granule(2 * MIB, "ok")], [])).toBe(
    "Random reads over more than 8 MiB miss the L2 TLB with 4K pages, and each miss costs the page walk, whose cost was not measured. 2M pages reach 4 GiB, 512 times as far.",
  );
  expect(fracturedSentence(geometry([granule(2 * MIB, "ok")], []), 4096)).toBeNull();
});
