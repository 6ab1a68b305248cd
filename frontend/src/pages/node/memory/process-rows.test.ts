import { expect, it } from "vitest";
import type { NodeProcesses, ProcessMemory } from "@/api/types";
import { limitText, processRows } from "./process-rows";

const MIB = 2 ** 20;
const process = (over: Partial<ProcessMemory>): ProcessMemory =>
  ({
    pid: 1,
    start_time_ticks: 1,
    name: "postgres",
    rss_bytes: 100 * MIB,
    anon_huge_bytes: 0,
    shmem_pmd_mapped_bytes: 0,
    private_hugetlb_bytes: 0,
    shared_hugetlb_bytes: 0,
    hugetlb_bytes: null,
    vm_pte_bytes: 4096,
    huge_page_mappings: null,
    unit: null,
    ...over,
  }) as ProcessMemory;
const data = (processes: ProcessMemory[], over: Partial<NodeProcesses> = {}): NodeProcesses => ({
  node_id: "n",
  taken_at: "2026-11-22T12:00:00Z",
  processes,
  units: [{ key: "u", kind: "container", name: "pg", pod: "shop/db-0", limit_bytes: null }],
  huge_page_limits: [limit],
  walks: [],
  ...over,
});
const limit = {
  unit: "u",
  cgroup_path: "/c",
  page_bytes: 2 * MIB,
  usage_bytes: 64 * MIB,
  limit_bytes: 1024 * MIB,
  limited: true,
  rsvd_limit_bytes: null,
  rsvd_limited: null,
  failures: 3,
};

it("counts THP apart from base pages, and leaves unknown unknown", () => {
  const [known, unknown] = processRows(
    data([
      process({ anon_huge_bytes: 30 * MIB }),
      process({ pid: 2, rss_bytes: 50 * MIB, anon_huge_bytes: null, private_hugetlb_bytes: null }),
    ]),
  );
  expect([known?.baseBytes, known?.thpBytes, known?.pools]).toEqual([70 * MIB, 30 * MIB, []]);
  expect([unknown?.baseBytes, unknown?.thpBytes, unknown?.pools]).toEqual([null, null, null]);
});

it("puts users of pools first, with the limits of their container", () => {
  const rows = processRows(
    data([process({}), process({ pid: 2, unit: "u", shared_hugetlb_bytes: 8 * MIB, rss_bytes: 1 })]),
  );
  expect(rows.map(({ pid }) => pid)).toEqual([2, 1]);
  expect(rows[0]?.pools).toEqual([{ pageBytes: null, bytes: 8 * MIB }]);
  expect(rows[0]?.limits).toEqual([limit]);
  expect(rows[1]?.limits).toEqual([]);
});

it("says a limit, that there is none, and that it is unknown", () => {
  const plain = (text: string) => text.replaceAll("\u00a0", " ");
  expect(plain(limitText(limit))).toBe("2M: 1 GiB, 64 MiB used, refused 3 times");
  expect(plain(limitText({ ...limit, limited: false }))).toBe("2M: no limit");
  expect(plain(limitText({ ...limit, limited: null, limit_bytes: null }))).toBe("2M: unknown");
});
