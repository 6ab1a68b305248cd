import { describe, expect, it } from "vitest";
import { fakeNode } from "@/test/fakes";
import { fleetHeadline, summariseFleet } from "./fleet-summary";

const now = new Date("2026-11-20T12:00:00Z");
const plain = (text: string) => text.replaceAll("\u00a0", " ");

describe("summariseFleet", () => {
  it("adds memory and pools by page size, and the parts sum to the memory", () => {
    const fleet = summariseFleet(
      [
        fakeNode(),
        fakeNode({
          pools: [{ page_bytes: 2 ** 30, nr_hugepages: 2, free_hugepages: 2 }],
          latest_run_id: null,
        }),
      ],
      now,
    );
    expect(fleet.memoryBytes).toBe(128 * 2 ** 30);
    expect(fleet.reservedBytes).toBe(3 * 2 ** 30);
    expect(fleet.idleBytes).toBe(128 * 2097152 + 2 * 2 ** 30);
    expect(fleet.parts.reduce((sum, part) => sum + part.bytes, 0)).toBe(fleet.memoryBytes);
    expect(fleet.toLookAt[0]?.observations.map(({ code }) => code)).toEqual(["idle_pool", "not_measured"]);
    expect(plain(fleetHeadline(fleet))).toBe(
      "2.25 GiB of the 3 GiB reserved in huge pages is idle. Look at 2 nodes.",
    );
  });
  it("counts nodes whose use is unknown instead of calling it idle", () => {
    const fleet = summariseFleet(
      [fakeNode({ pools: [{ page_bytes: 2097152, nr_hugepages: 4, free_hugepages: null }] })],
      now,
    );
    expect(fleet.unknownUse).toBe(1);
    expect(fleet.idleBytes).toBe(0);
  });
  it("says what to do when nothing is reserved", () => {
    expect(fleetHeadline(summariseFleet([fakeNode({ pools: [] })], now))).toBe(
      "No huge pages are reserved on the node. Plan one to see what they would buy.",
    );
  });
});
