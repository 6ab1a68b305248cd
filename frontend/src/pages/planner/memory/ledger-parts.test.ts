import { describe, expect, it } from "vitest";
import type { LedgerPart, Plan } from "@/api/types";
import { drawnBytes, type MapBar } from "@/components/memory-map/memory-map-types";
import { GIB } from "@/lib/units";
import { previewOf } from "@/test/plan-fixture";
import { ledgerTitle } from "./ledger-card";
import { ledgerBars, ledgerMapParts } from "./ledger-parts";

const part = (kind: LedgerPart["kind"], bytes: number, over: Partial<LedgerPart> = {}): LedgerPart => ({
  kind,
  name: kind,
  numa_node: 0,
  bytes,
  source: "computed",
  page_bytes: null,
  explanation: null,
  ...over,
});

const plan = (parts: LedgerPart[]) =>
  ({ node: "db-7", ledger: { mem_total_bytes: parts.reduce((sum, p) => sum + p.bytes, 0), parts } }) as Plan;

describe("ledgerMapParts", () => {
  it("joins parts of a kind and keeps the drawing order", () => {
    const parts = ledgerMapParts([
      part("free", 2 * GIB),
      part("pool", 8 * GIB, { page_bytes: 2097152 }),
      part("pool_slack", 1, { page_bytes: 2097152 }),
      part("tenants", GIB, { name: "app", source: "given" }),
      part("tenants", GIB, { name: "web", source: "assumed" }),
      part("kernel", GIB),
    ]);
    expect(parts.map(({ key }) => key)).toEqual([
      "kernel",
      "tenants",
      "pool:2097152",
      "pool_slack:2097152",
      "free",
    ]);
    expect(parts[1]).toMatchObject({ bytes: 2 * GIB, source: "assumed", detail: "app, web." });
    expect(parts[2]?.label.replaceAll("\u00a0", " ")).toBe("Pool of 2M pages");
  });
});

describe("one name per quantity", () => {
  it("is the kernel's own memory alone that is called so, as on the node's page", () => {
    const parts = ledgerMapParts([
      part("kernel", GIB, { name: "kernel and slab" }),
      part("kernel", 5 * GIB, { name: "not accounted by the kernel" }),
      part("free", GIB),
    ]);
    expect(parts.map(({ label, bytes }) => [label, bytes / GIB])).toEqual([
      ["Kernel", 1],
      ["Not accounted by the kernel", 5],
      ["Free", 1],
    ]);
  });
});

describe("ledgerBars", () => {
  it("puts the plan above the node of today, in the same parts", () => {
    const parts = [part("kernel", GIB), part("free", 2 * GIB)];
    const seen = { ...plan(parts), now: plan(parts) } as unknown as Plan;
    const [bar] = ledgerBars(seen);
    expect(bar?.ghost?.map(({ key }) => key)).toEqual(bar?.parts.map(({ key }) => key));
    expect(ledgerBars(plan(parts))[0]?.ghost).toBeUndefined();
  });
  it("draws a bar a NUMA node", () => {
    const bars = ledgerBars(plan([part("free", GIB), part("free", 2 * GIB, { numa_node: 1 })]));
    expect(bars.map(({ label, totalBytes }) => [label, totalBytes / GIB])).toEqual([
      ["NUMA node 0", 1],
      ["NUMA node 1", 2],
    ]);
  });
});

describe("a plan that does not fit", () => {
  it("is drawn beyond the end of the bar, not as exactly full", () => {
    const [bar] = ledgerBars(plan([part("tenants", 3 * GIB), part("free", -GIB)]));
    expect(bar?.totalBytes).toBe(2 * GIB);
    expect(bar?.parts.at(-1)).toMatchObject({ key: "missing", look: "missing", bytes: GIB });
    expect(drawnBytes(bar as MapBar)).toBe(3 * GIB);
  });
});

it("says in words that it is not known what programs can still get", () => {
  expect(ledgerTitle(previewOf()).replaceAll("\u00a0", " ")).toBe(
    "12 GiB of 64 GiB stays available to programs.",
  );
  expect(ledgerTitle(previewOf({}, { available_planned_bytes: null })).replaceAll("\u00a0", " ")).toBe(
    "How much of 64 GiB stays available to programs is not known.",
  );
});
