import { describe, expect, it } from "vitest";
import { backingKindOf, backingLabel, pageSizeColor, pageSizeShort } from "./page-size";
import { GIB, KIB, MIB } from "./units";

describe("page size hues", () => {
  it("gives the named sizes their own hue", () => {
    expect(pageSizeColor(4 * KIB, "base")).toBe("var(--hp-page-4k)");
    expect(pageSizeColor(64 * KIB, "base")).toBe("var(--hp-page-4k)");
    expect(pageSizeColor(2 * MIB, "thp")).toBe("var(--hp-page-thp)");
    expect(pageSizeColor(2 * MIB, "hugetlb")).toBe("var(--hp-page-2m)");
    expect(pageSizeColor(GIB, "hugetlb")).toBe("var(--hp-page-1g)");
  });
  it("mixes other sizes by their logarithm", () => {
    expect(pageSizeColor(64 * KIB, "hugetlb")).toBe(
      "color-mix(in oklch, var(--hp-page-2m) 44%, var(--hp-page-4k))",
    );
    expect(pageSizeColor(16 * MIB, "hugetlb")).toBe(
      "color-mix(in oklch, var(--hp-page-1g) 33%, var(--hp-page-2m))",
    );
    expect(pageSizeColor(64 * GIB, "hugetlb")).toBe("var(--hp-page-16g)");
  });
});

describe("page size words", () => {
  it.each([
    [4 * KIB, "4K"],
    [64 * KIB, "64K"],
    [2 * MIB, "2M"],
    [GIB, "1G"],
    [16 * GIB, "16G"],
  ])("%i is %s", (bytes, text) => expect(pageSizeShort(bytes)).toBe(text));
  it("names a backing", () => {
    expect(backingLabel("thp", 2 * MIB).replaceAll("\u00a0", " ")).toBe("THP (2M)");
    expect(backingKindOf(64 * KIB, 64 * KIB)).toBe("base");
    expect(backingKindOf(64 * KIB, 4 * KIB)).toBe("hugetlb");
    expect(backingKindOf(4 * KIB, null)).toBe("base");
  });
});
