import { describe, expect, it } from "vitest";
import { fakeNode } from "@/test/fakes";
import { nodeObservations, poolBytes } from "./node-observations";

const now = new Date("2026-11-20T12:00:00Z");
const codes = (node: Parameters<typeof nodeObservations>[0]) =>
  nodeObservations(node, now).map(({ code }) => code);

describe("nodeObservations", () => {
  it("says nothing of a measured node whose pool is used", () => {
    const pool = { page_bytes: 2097152, nr_hugepages: 512 };
    expect(codes(fakeNode({ pools: [{ ...pool, free_hugepages: 40 }] }))).toEqual([]);
  });
  it("counts what is idle in a pool that is partly used", () => {
    expect(nodeObservations(fakeNode(), now)[0]?.text.replaceAll("\u00a0", " ")).toBe(
      "128 of 512 × 2 MiB are reserved and idle (256 MiB).",
    );
  });
  it("sees a fractured guest, and does not call an unknown granule fractured", () => {
    expect(codes(fakeNode({ pools: [], effective_granule_bytes: 4096 }))).toEqual(["fractured"]);
    expect(codes(fakeNode({ pools: [], effective_granule_bytes: null }))).toEqual([]);
  });
  it("sees an idle pool only when its free pages are known", () => {
    const pool = { page_bytes: 2097152, nr_hugepages: 512 };
    expect(codes(fakeNode({ pools: [{ ...pool, free_hugepages: 512 }] }))).toEqual(["idle_pool"]);
    expect(codes(fakeNode({ pools: [{ ...pool, free_hugepages: null }] }))).toEqual([]);
    expect(codes(fakeNode({ pools: [{ ...pool, nr_hugepages: 0, free_hugepages: 0 }] }))).toEqual([]);
  });
  it("takes an empty pool for worse than a partly idle one, however large", () => {
    const found = nodeObservations(
      fakeNode({
        pools: [
          { page_bytes: 2 ** 30, nr_hugepages: 100, free_hugepages: 90 },
          { page_bytes: 2097152, nr_hugepages: 4, free_hugepages: 4 },
        ],
      }),
      now,
    );
    expect(found.map(({ state, idleBytes }) => [state, idleBytes])).toEqual([
      ["wrong", 4 * 2097152],
      ["attention", 90 * 2 ** 30],
    ]);
  });
  it("sees silence and a missing measurement", () => {
    expect(
      codes(fakeNode({ pools: [], last_report_at: "2026-11-18T12:00:00Z", latest_run_id: null })),
    ).toEqual(["silent", "not_measured"]);
  });
});

it("adds pools up and keeps unknown unknown", () => {
  expect(poolBytes(fakeNode().pools)).toEqual({ reserved: 2 ** 30, used: 384 * 2097152 });
  expect(poolBytes([{ page_bytes: 2 ** 30, nr_hugepages: 2, free_hugepages: null }])).toEqual({
    reserved: 2 ** 31,
    used: null,
  });
});
