import { screen, within } from "@testing-library/react";
import { expect, it } from "vitest";
import type { RunCurve, RunDetail } from "@/api/types";
import { renderWithTheme } from "@/test/render";
import { WalksCard } from "./walks-card";

const curve = (xName: string, backing: string, medians: readonly [number, number][]): RunCurve => ({
  section: "walks",
  beside_backing: null,
  name: `walks ${xName} ${backing}`,
  x_name: xName,
  backing,
  backing_kind: backing === "4K" ? "base" : backing === "2M" ? "hugetlb" : "multi_size_thp",
  page_bytes: backing === "4K" ? 4096 : backing === "2M" ? 2 ** 21 : 65536,
  layout: "line_per_page",
  footprint_bytes: 2 ** 27,
  granted_fraction: 1,
  status: medians.length > 0 ? "ok" : "no_free_hugepages",
  reason: medians.length > 0 ? null : "the pool of 2M pages has no free page",
  points: medians.map(([x, ns]) => ({
    x,
    ns_min: ns,
    ns_p10: ns,
    ns_p50: ns,
    ns_p90: ns,
    ns_mad: 0,
    batches: 6,
    dropped: 0,
  })),
});

const CHASES = [
  curve("chases", "4K", [
    [1, 120],
    [8, 15],
  ]),
  curve("chases", "THP-64K", [[1, 90]]),
  curve("chases", "2M", []),
];
const NODES = [
  curve("numa_node", "4K", [
    [0, 171],
    [1, 100],
  ]),
];

const run = (curves: RunCurve[], node: number | null): RunDetail =>
  ({ curves, walks_cpu_node: node }) as unknown as RunDetail;
const heading = () => screen.getByRole("heading", { level: 2 }).textContent?.replaceAll("\u00a0", " ");

it("says how far walks overlap, and names what was not measured", () => {
  renderWithTheme(<WalksCard run={run(CHASES, 0)} />);
  expect(heading()).toBe("In base pages, a read takes 120.0 ns alone and 15.0 ns beside seven others.");
  const table = screen.getByRole("region", { name: /^Independent chases/ });
  expect(within(table).getByRole("columnheader", { name: /^THP-64K over 128/ })).toBeTruthy();
  expect(within(table).getByRole("row", { name: /^1 120.0\sns 90.0\sns$/ })).toBeTruthy();
  expect(screen.getByText("Not measured: the pool of 2M pages has no free page")).toBeTruthy();
  expect(screen.queryByRole("region", { name: /^NUMA node/ })).toBeNull();
});

it("tells own memory from that of another NUMA node", () => {
  renderWithTheme(<WalksCard run={run([...CHASES, ...NODES], 1)} />);
  expect(heading()).toBe(
    "In base pages, a read of the farthest NUMA node takes 171.0 ns, of the own one 100.0 ns.",
  );
  const table = screen.getByRole("region", { name: /^NUMA node/ });
  expect(within(table).getByRole("row", { name: /^1 \(own\) 100.0\sns$/ })).toBeTruthy();
  expect(within(table).getByRole("row", { name: /^0 171.0\sns$/ })).toBeTruthy();
});
