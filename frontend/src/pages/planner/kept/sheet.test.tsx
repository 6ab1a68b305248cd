import { screen, within } from "@testing-library/react";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { keptOf, planOf } from "@/test/plan-fixture";
import { renderWithTheme } from "@/test/render";
import { Sheet } from "./sheet";

const plain = (text: string | null) => (text ?? "").replaceAll("\u00a0", " ");
const finding = (index: number) => ({
  code: "c",
  state: "attention",
  subject: `s${index}`,
  title: `Title ${index}`,
  reason: "",
  fix: "Fix it.",
  evidence: [],
});

beforeEach(() => void vi.useFakeTimers({ now: new Date("2031-05-06T07:08:09Z"), toFake: ["Date"] }));
afterEach(() => void vi.useRealTimers());

it("names the plan's own times and digest, and never the clock of who looks", () => {
  renderWithTheme(<Sheet kept={keptOf()} />);
  const text = plain(screen.getByRole("article").textContent);
  for (const part of ["7f3a-91c2-5d0e-b846", "2026-01-02 03:04:05 UTC by dba", "2026-01-02 03:00:00 UTC"])
    expect(text).toContain(part);
  expect(text).not.toContain("2031");
});

it("lists every change of every NUMA node and size, sorted", () => {
  renderWithTheme(<Sheet kept={keptOf()} />);
  const rows = within(screen.getAllByRole("table")[0] as HTMLElement)
    .getAllByRole("row")
    .slice(1)
    .map((row) => [...row.children].map((cell) => plain(cell.textContent)));
  expect(rows).toEqual([
    ["0", "2M", "1,024", "2,134", "+2.17 GiB"],
    ["1", "2M", "0", "2,134", "+4.17 GiB"],
    ["1", "1G", "0", "2", "+2 GiB"],
  ]);
});

it("sets a long table in columns, in the same order, and loses no row", () => {
  const [first] = planOf().pools;
  const pools = Array.from({ length: 32 }, (_, index) => ({ ...first, numa_node: 31 - index }));
  renderWithTheme(<Sheet kept={keptOf({ plan: planOf({ pools }) })} />);
  const nodes = screen
    .getAllByRole("table")
    .slice(0, 3)
    .flatMap((table) => within(table).getAllByRole("row").slice(1))
    .map((row) => Number(row.firstElementChild?.textContent));
  expect(nodes).toEqual(Array.from({ length: 32 }, (_, index) => index));
});

it("counts what is on the second page, and has all of it there", () => {
  const unknowns = Array.from({ length: 11 }, (_, index) => `fact ${index}`);
  const findings = Array.from({ length: 9 }, (_, index) => finding(index));
  renderWithTheme(<Sheet kept={keptOf({ plan: planOf({ unknowns, findings }) })} />);
  expect(screen.getByText("and 8 more, on the second page")).toBeTruthy();
  expect(screen.getByText("and 6 more, on the second page")).toBeTruthy();
  const second = screen.getByRole("region", { name: "Second page" });
  for (const text of unknowns) expect(second.textContent).toContain(`Unknown: ${text}`);
  for (const { title } of findings) expect(second.textContent).toContain(title);
});

it("never cuts a condition: the second page has those that the first one has no room for", () => {
  const approve_if = Array.from({ length: 10 }, (_, index) => `db${index} stays so.`);
  const { verdict } = keptOf();
  if (!verdict) throw new Error("the fixture has no verdict");
  renderWithTheme(<Sheet kept={keptOf({ verdict: { ...verdict, after: [], approve_if } })} />);
  expect(screen.getByText("and 7 more, on the second page")).toBeTruthy();
  const second = screen.getByRole("region", { name: "Second page" });
  for (const text of approve_if) expect(second.textContent).toContain(text);
});

it("says unknown for what is not known, and who approved", () => {
  const [first] = planOf().pools;
  const plan = planOf({ pools: [{ ...first, present_pages: null }] });
  renderWithTheme(
    <Sheet kept={keptOf({ plan, approved_by: "boss", approved_at: "2026-01-03T00:00:00Z" })} />,
  );
  expect(screen.getAllByRole("cell", { name: "unknown" })).toHaveLength(2);
  expect(plain(screen.getByRole("article").textContent)).toContain("Decided by: boss");
});
