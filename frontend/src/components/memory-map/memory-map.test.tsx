import { screen, within } from "@testing-library/react";
import { describe, expect, it } from "vitest";
import { GIB, MIB } from "@/lib/units";
import { renderWithTheme } from "@/test/render";
import { mapRows } from "./map-rows";
import { keyDelta, MemoryMap, scaleStep } from "./memory-map";
import type { MapBar, MapPart } from "./memory-map-types";

const part = (key: string, label: string, bytes: number, over: Partial<MapPart> = {}): MapPart => ({
  key,
  label,
  bytes,
  color: "gray",
  source: "measured",
  look: "solid",
  ...over,
});

const bar: MapBar = {
  key: "node",
  label: "db-7",
  totalBytes: 4 * GIB,
  parts: [part("kernel", "Kernel", GIB), part("free", "Free", 3 * GIB, { look: "free" })],
  ghost: [
    part("kernel", "Kernel", GIB),
    part("pool:2097152", "Pool of 2M pages", 2 * GIB, {
      look: "pool",
      pageBytes: 2 * MIB,
      source: "computed",
    }),
    part("free", "Free", GIB, { look: "free" }),
  ],
};

describe("MemoryMap", () => {
  it("tells screen readers the parts of both bars", () => {
    renderWithTheme(<MemoryMap bars={[bar]} names={{ ghost: "Planned", real: "Now" }} />);
    expect(
      screen.getByRole("group", { name: /^Memory of db-7, 4\sGiB: Kernel 1\sGiB, Free 3\sGiB$/ }),
    ).toBeTruthy();
    expect(
      screen.getByRole("group", { name: /^Planned memory of db-7.*Pool of 2M pages 2\sGiB/ }),
    ).toBeTruthy();
  });
  it("draws no arrow between two sizes that read alike", () => {
    const near = [part("kernel", "Kernel", GIB + 1024), part("free", "Free", 2 * GIB, { look: "free" })];
    renderWithTheme(<MemoryMap legend="key" bars={[{ ...bar, ghost: near }]} />);
    const legend = screen.getAllByRole("listitem").map((item) => item.textContent?.replaceAll("\u00a0", " "));
    expect(legend).toEqual(["Kernel 1 GiB", "Free 3 GiB → 2 GiB"]);
  });
  it("leaves empty what a bar does not tell apart, instead of writing zero", async () => {
    renderWithTheme(<MemoryMap bars={[bar]} />);
    const row = await screen.findByRole("row", { name: /Pool of 2M pages/ });
    expect(
      within(row)
        .getAllByRole("cell")
        .map((cell) => cell.textContent?.replaceAll("\u00a0", " ")),
    ).toEqual(["", "2 GiB", "50 %", "computed"]);
  });
});

describe("mapRows", () => {
  it("sums a part over NUMA nodes and keeps the drawing order", () => {
    const rows = mapRows([bar, { ...bar, key: "other" }]);
    expect(rows.map(({ part: { key }, bytes, ghostBytes }) => [key, bytes, ghostBytes])).toEqual([
      ["kernel", 2 * GIB, 2 * GIB],
      ["pool:2097152", null, 4 * GIB],
      ["free", 6 * GIB, 2 * GIB],
    ]);
  });
});

it("gives four to eight ticks at powers of two", () => {
  expect(scaleStep(64 * GIB)).toBe(8 * GIB);
  expect(scaleStep(24 * GIB)).toBe(4 * GIB);
  expect(scaleStep(100 * MIB)).toBe(16 * MIB);
});

it("moves a pool by all keys of a slider", () => {
  expect(keyDelta("ArrowUp", 4 * GIB, GIB, 64 * GIB)).toBe(GIB);
  expect(keyDelta("ArrowLeft", 4 * GIB, GIB, 64 * GIB)).toBe(-GIB);
  expect(keyDelta("Home", 4 * GIB, GIB, 64 * GIB)).toBe(-4 * GIB);
  expect(keyDelta("End", 4 * GIB, GIB, 64 * GIB)).toBe(GIB);
  expect(keyDelta("a", 4 * GIB, GIB, 64 * GIB)).toBeUndefined();
});
