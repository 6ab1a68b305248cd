import { screen, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it } from "vitest";
import type { Pressure, PressurePoint, RunCurve, RunDetail } from "@/api/types";
import { renderWithTheme } from "@/test/render";
import { PressureCard } from "./pressure-card";

const MIB = 2 ** 20;

const curve = (backing: string, status: string, reason: string | null): RunCurve => ({
  section: "latency",
  beside_backing: null,
  name: backing,
  x_name: "footprint_bytes",
  backing,
  backing_kind: backing === "4K" ? "base" : backing === "THP" ? "thp" : "hugetlb",
  page_bytes: backing === "4K" ? 4096 : backing === "1G" ? 1024 * MIB : 2 * MIB,
  layout: "line_per_page",
  footprint_bytes: null,
  granted_fraction: 1,
  status,
  reason,
  points: [],
});

const point = (backing: string, lines: number, saving: number, waitNs = 0): PressurePoint => ({
  backing,
  backing_kind: backing === "THP" ? "thp" : "hugetlb",
  page_bytes: 2 * MIB,
  footprint_bytes: 512 * MIB,
  lines_between: lines,
  wait_ns: waitNs,
  period_ns: 900,
  base_ns_p50: 400,
  ns_p50: 400 - saving,
  delta_ns: -saving,
  ci95_low_ns: -saving - 9,
  ci95_high_ns: -saving + 9,
  pairs: 12,
});

const measured: Pressure = {
  status: "ok",
  reason: null,
  region_bytes: 512 * MIB,
  region_backing: "THP",
  lines_per_page: 16,
  points: [
    point("THP", 0, 5),
    point("THP", 256, 150),
    point("2M", 0, 20),
    point("2M", 256, 145),
    point("2M", 16, 165, 8000),
  ],
};

const run = (pressure: Pressure | null): RunDetail => ({
  id: "r",
  node_id: "n",
  node_name: "db-7",
  synthetic: false,
  started_at: "2026-11-20T12:00:00Z",
  bad: false,
  bad_reason: null,
  profile: "quick",
  command: "run",
  tool_version: "0.1.0",
  duration_seconds: 40,
  sections: [],
  environment: null,
  geometry: null,
  curves: [
    curve("4K", "ok", null),
    curve("1G", "no_free_hugepages", "the pool of 1G pages has no free page"),
  ],
  paired_deltas: [],
  pressure,
  rows: null,
  scatter: null,
  walks_cpu_node: null,
  scatter_loses_from_lines: null,
});

const card = (pressure: Pressure | null) =>
  renderWithTheme(<PressureCard run={run(pressure)} basePageBytes={4096} />);

const heading = () => screen.getByRole("heading").textContent?.replaceAll("\u00a0", " ");

it("reads the smallest pool first, and the size that is chosen", async () => {
  card(measured);
  expect(heading()).toBe(
    "2M pages save 145 ns per access when a program reads 256 other lines between two accesses; a plain pointer chase shows only 20 ns.",
  );
  await userEvent.click(screen.getByRole("radio", { name: "THP" }));
  expect(heading()).toBe(
    "THP saves 150 ns per access when a program reads 256 other lines between two accesses; a plain pointer chase shows no clear difference.",
  );
  const table = screen.getByRole("region", { name: /^Savings of THP/ });
  expect(within(table).getByRole("row", { name: /^512\sMiB 5 ± 9 150 ± 9$/ })).toBeTruthy();
});

it("shows waits only for a page size that waited", async () => {
  card(measured);
  await userEvent.click(screen.getByRole("radio", { name: "Time between" }));
  expect(screen.getByRole("figure", { name: /by time between$/ })).toBeTruthy();
  await userEvent.click(screen.getByRole("radio", { name: "THP" }));
  expect(screen.queryByRole("radio", { name: "Time between" })).toBeNull();
  expect(screen.getByRole("figure", { name: /by lines between$/ })).toBeTruthy();
});

it("names what was not measured, and why", () => {
  card({ ...measured, status: "noisy", reason: "other work held the core at 5 of 32 points" });
  expect(screen.getByText("Not measured: the pool of 1G pages has no free page")).toBeTruthy();
  expect(screen.getByText(/not complete: other work held the core at 5 of 32 points\./)).toBeTruthy();
});

it("says why there is no point, and what an older run lacks", () => {
  const { unmount } = card({ ...measured, status: "memory_limit", reason: null, points: [] });
  expect(screen.getByText(/^Not measured: it would take more memory/)).toBeTruthy();
  unmount();
  card(null);
  expect(screen.getByText(/^Unknown: this run was made before/)).toBeTruthy();
});

it("is absent where latency was not asked for", () => {
  renderWithTheme(<PressureCard run={{ ...run(null), curves: [] }} basePageBytes={4096} />);
  expect(screen.queryByRole("heading")).toBeNull();
});
