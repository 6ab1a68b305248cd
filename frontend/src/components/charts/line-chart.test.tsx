import { screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it } from "vitest";
import { formatBytes, formatNs } from "@/lib/units";
import { renderWithTheme } from "@/test/render";
import type { ChartRow, ChartSeries } from "./chart-types";
import { LineChart } from "./line-chart";

const series: ChartSeries[] = [
  { key: "a", label: "4 KiB base pages", short: "4K", color: "gray", marker: "circle" },
  { key: "b", label: "2 MiB pages", short: "2M", color: "blue", marker: "triangle" },
];
const rows: ChartRow[] = [
  { x: 65536, values: { a: 5, b: 5 } },
  { x: 131072, values: { a: 9, b: null } },
];

function chart(some: ChartRow[] = rows) {
  return (
    <LineChart
      title="Latency"
      rows={some}
      series={series}
      xAxis={{ label: "Footprint", scale: "log2", format: formatBytes }}
      valueAxis={{ label: "ns", format: formatNs }}
      empty="Nothing was measured."
    />
  );
}

it("offers the same numbers as a table, with unknown as the word", async () => {
  renderWithTheme(chart());
  await userEvent.click(screen.getByRole("radio", { name: "Table" }));
  expect(screen.getByRole("row", { name: /^128\sKiB 9\.0\sns unknown$/ })).toBeTruthy();
});

it("hides a series on request, in the table too", async () => {
  renderWithTheme(chart());
  const button = screen.getByRole("button", { name: "2 MiB pages" });
  await userEvent.click(button);
  expect(button.getAttribute("aria-pressed")).toBe("false");
  await userEvent.click(screen.getByRole("radio", { name: "Table" }));
  expect(screen.queryByRole("columnheader", { name: "2 MiB pages" })).toBeNull();
});

it("says so when there is nothing to draw", () => {
  renderWithTheme(chart([]));
  expect(screen.getByText("Nothing was measured.")).toBeTruthy();
});
