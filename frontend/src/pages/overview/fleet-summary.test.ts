import { expect, it } from "vitest";
import { fleetHeadline, fleetParts } from "./fleet-summary";

const GIB = 2 ** 30;
const fleet = {
  nodes: 10_000,
  nodes_wrong: 0,
  nodes_attention: 0,
  nodes_synthetic: 0,
  time_bombs: 0,
  silent_fallbacks: 0,
  memory: {
    mem_total_bytes: 640 * GIB,
    mem_available_bytes: 300 * GIB,
    pool_bytes: 100 * GIB,
    pool_used_bytes: 60 * GIB,
    pool_idle_bytes: 40 * GIB,
    page_tables_bytes: 4 * GIB,
    anon_huge_pages_bytes: 0,
    nodes_unknown: 0,
  },
  pools: [
    {
      page_bytes: 2 ** 21,
      nodes: 9000,
      nr_hugepages: 51_200,
      free_hugepages: 20_480,
      total_bytes: 100 * GIB,
      free_bytes: 40 * GIB,
      nodes_unknown: 0,
    },
  ],
};
const plain = (text: string) => text.replaceAll("\u00a0", " ");

it("divides all of the memory, and says what of a pool is idle", () => {
  const parts = fleetParts(fleet);
  expect(parts.reduce((sum, { bytes }) => sum + bytes, 0)).toBe(640 * GIB);
  expect(parts.map(({ key, bytes }) => [key, bytes / GIB])).toEqual([
    ["in_use", 236],
    ["in_use:thp", 0],
    ["page_tables", 4],
    ["pool:2097152", 100],
    ["free", 300],
  ]);
  expect(parts[3]?.fills?.map(({ bytes }) => bytes / GIB)).toEqual([60, 40]);
});

it("puts what is wrong first, for the whole fleet and not for a page of it", () => {
  expect(plain(fleetHeadline({ ...fleet, nodes_wrong: 38, silent_fallbacks: 9, time_bombs: 1 }))).toBe(
    "38 of 10,000 nodes have a problem to fix, with 1 time bomb and 9 silent fallbacks; 40 GiB of huge pages are idle.",
  );
  expect(plain(fleetHeadline({ ...fleet, nodes_attention: 2 }))).toMatch(
    /^2 of 10,000 nodes need attention;/,
  );
  expect(plain(fleetHeadline({ ...fleet, nodes: 1, nodes_attention: 1 }))).toMatch(
    /^1 of 1 node needs attention;/,
  );
});

it("does not say idle where nothing is reserved or all is used", () => {
  const memory = (change: Partial<typeof fleet.memory>) =>
    plain(fleetHeadline({ ...fleet, memory: { ...fleet.memory, ...change } }));
  expect(memory({ pool_bytes: 0, pool_idle_bytes: 0 })).toMatch(/; no huge pages are reserved\.$/);
  expect(memory({ pool_idle_bytes: 0 })).toMatch(/; all 100 GiB of huge pages are in use\.$/);
  // What a node does not say is neither none nor all.
  expect(memory({ pool_bytes: 0, pool_idle_bytes: 0, nodes_unknown: 1 })).toMatch(
    /; no huge pages are known to be reserved\.$/,
  );
  expect(memory({ pool_idle_bytes: 0, nodes_unknown: 1 })).toMatch(
    /; none of 100 GiB of huge pages are known to be idle\.$/,
  );
  expect(memory({ nodes_unknown: 1 })).toMatch(/; at least 40 GiB of huge pages are idle\.$/);
});

it("draws transparent huge pages as a part of ordinary memory, never more than there is of it", () => {
  const thp = (bytes: number) =>
    fleetParts({ ...fleet, memory: { ...fleet.memory, anon_huge_pages_bytes: bytes } });
  expect(thp(36 * GIB).map(({ bytes }) => bytes / GIB)).toEqual([200, 36, 4, 100, 300]);
  expect(thp(900 * GIB).reduce((sum, { bytes }) => sum + bytes, 0)).toBe(640 * GIB);
});
