import { expect, it } from "vitest";
import { planOf, verdictOf } from "@/test/plan-fixture";
import { comparisonRows, pagesInForce } from "./compare-card";

const GIB = 2 ** 30;
const plain = (text: string | null | undefined) => text?.replaceAll("\u00a0", " ") ?? null;

it("puts each figure of each plan into one row, with today beside it", () => {
  const here = { plan: planOf({ now: { available_bytes: 20 * GIB } }), verdict: verdictOf() };
  const there = {
    plan: planOf({ net_memory: { locked_bytes: 4 * GIB, idle_bytes: 0 } }),
    verdict: verdictOf({ available_planned_bytes: 16 * GIB, certainty: "high" }),
  };
  const rows = comparisonRows([{ shown: here }, { shown: there }, { shown: null }], here.plan);
  const row = (name: string) => rows.find((one) => one.name === name);
  expect(rows.slice(0, 2).map(({ name, now }) => [name, now])).toEqual([
    ["Pages of 2M", "1,024"],
    ["Pages of 1G", "0"],
  ]);
  expect(plain(row("Available to programs")?.now)).toBe("20 GiB");
  expect(row("Available to programs")?.values.map(plain)).toEqual(["12 GiB", "16 GiB", null]);
  expect(row("Memory in pools")?.values.map(plain)).toEqual(["8 GiB", "4 GiB", null]);
  expect(row("How sure")?.values).toEqual(["medium", "high", null]);
});

it("says zero of a size of which the node has no page, and unknown where that was not read", () => {
  const pool = (page_bytes: number, pages: number, present_pages: number | null) => ({
    ...planOf().pools[0],
    ...{ page_bytes, pages, present_pages },
  });
  const another = { shown: { plan: planOf({ pools: [pool(GIB, 8, 0)] }), verdict: null } };
  const now = (present: number | null) =>
    comparisonRows([another], planOf({ pools: [pool(2 ** 21, 9, 9), pool(GIB, 0, present)] }))[0]?.now;
  expect(now(0)).toBe("0");
  expect(now(null)).toBe("unknown");
});

it("knows the pages of a plan in force that was not saved here, and nothing else of it", () => {
  const pools = [
    { page_bytes: 2 ** 21, pages: 100, numa_node: 0 },
    { page_bytes: 2 ** 21, pages: 50, numa_node: 1 },
  ];
  const pages = pagesInForce({ pools } as unknown as Parameters<typeof pagesInForce>[0]);
  const rows = comparisonRows([{ shown: null, pages }], planOf());
  expect(rows[0]).toMatchObject({ name: "Pages of 2M", values: ["150"] });
  expect(rows.slice(1).every(({ values }) => values[0] === null)).toBe(true);
});

it("says what is missing where a plan does not fit", () => {
  const shortfall = { shortfall_bytes: GIB, reason: "1 GiB is missing.", options: [] };
  const [row] = comparisonRows([{ shown: { plan: planOf({ shortfall }), verdict: null } }], planOf()).filter(
    ({ name }) => name === "Available to programs",
  );
  expect(plain(row?.values[0])).toBe("1 GiB short");
});
