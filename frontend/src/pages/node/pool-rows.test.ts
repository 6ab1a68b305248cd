import { describe, expect, it } from "vitest";
import { GIB, MIB } from "@/lib/units";
import { pagesAskedAtBoot } from "./pool-rows";

const asked = (line: string | null) => {
  const found = pagesAskedAtBoot(line, 2 * MIB);
  return found && [...found.entries()];
};

describe("pagesAskedAtBoot", () => {
  it("gives each count to the size before it", () => {
    expect(asked("ro hugepagesz=1G hugepages=4 hugepagesz=2M hugepages=512")).toEqual([
      [GIB, 4],
      [2 * MIB, 512],
    ]);
  });
  it("uses the default size for a count without one", () => {
    expect(asked("hugepages=128")).toEqual([[2 * MIB, 128]]);
    expect(asked("hugepages=2 default_hugepagesz=1G")).toEqual([[GIB, 2]]);
  });
  it("sums counts per NUMA node", () => {
    expect(asked("hugepagesz=2M hugepages=0:100,1:28")).toEqual([[2 * MIB, 128]]);
  });
  it("tells nothing asked from not known", () => {
    expect(asked("quiet splash")).toEqual([]);
    expect(asked(null)).toBeNull();
    expect(asked("hugepages=lots")).toEqual([]);
  });
});
