import { describe, expect, it } from "vitest";
import { GIB, MIB } from "@/lib/units";
import { bareSizeText, settingBytes, settingText, sizeToStep, stepToSize } from "./pool-size";

describe("sizes of settings", () => {
  it.each([
    ["8GB", 8 * GIB],
    ["8G", 8 * GIB],
    ["512MiB", 512 * MIB],
    ["1.5GB", 1.5 * GIB],
    ["1024", 1024 * 8192],
    ["eight", null],
    ["", null],
  ])("%s", (text, bytes) => expect(settingBytes(text, 8192)).toBe(bytes));
  it.each([
    ["32", 8192, "No unit: read as 256 KiB (32 × 8 KiB)."],
    ["6", 1, "No unit: read as 6 B."],
    [" 65536 ", 1024, "No unit: read as 64 MiB (65536 × 1 KiB)."],
    ["32GB", 8192, null],
    ["6Gi", 1, null],
    ["0", 1, null],
    ["auto", 1, null],
    ["", 8192, null],
  ])("%s of %s each: %s", (text, unitBytes, said) =>
    expect(bareSizeText(text, unitBytes)?.replaceAll("\u00a0", " ") ?? null).toBe(said),
  );
  it("writes them as the engine spells them", () => {
    expect([settingText(8 * GIB, "B"), settingText(8 * GIB, ""), settingText(1536 * MIB, "B")]).toEqual([
      "8GB",
      "8G",
      "1536MB",
    ]);
  });
  it("never stands still: each step of a slider is a size of its own", () => {
    for (let step = sizeToStep(128 * MIB); step <= sizeToStep(2048 * GIB); step += 1)
      expect(sizeToStep(stepToSize(step))).toBe(step);
  });
  it("moves a slider in even shares and comes back to the size it shows", () => {
    for (const bytes of [128 * MIB, GIB, 8 * GIB, 14.5 * GIB, 200 * GIB]) {
      expect(stepToSize(sizeToStep(bytes)) / bytes).toBeGreaterThan(0.96);
      expect(stepToSize(sizeToStep(bytes)) / bytes).toBeLessThan(1.04);
    }
  });
});
