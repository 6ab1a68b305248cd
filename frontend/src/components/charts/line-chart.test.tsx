import { screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it } from "vitest";
import { formatBytes, formatNs } from "@/lib/units";
import { renderWithTheme } from "@/test/render";
import type { ChartRow, ChartSeries } from "./chart-types";
import { LineChart } from "./line-chart";

const series: ChartSeries[] = [
  { key: "a", label: "4K base pages", short: "4K", color: "gray", marker: "circle" },
  { key: "b", label: "2M pages", short: "2M", color: "blue", marker: "triangle" },
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
  const button = screen.getByRole("button", { name: "2M pages" });
  await userEvent.click(button);
  expect(button.getAttribute("aria-pressed")).toBe("false");
  await userEvent.click(screen.getByRole("radio", { name: "Table" }));
  expect(screen.queryByRole("columnheader", { name: "2M pages" })).toBeNull();
});

it("says so when there is nothing to draw", () => {
  renderWithTheme(chart([]));
  expect(screen.getByText("Nothing was measured.")).toBeTruthy();
});

it("draws one line per series, and no mark per point where there are thousands", () => {
  const many: ChartSeries[] = Array.from({ length: 20 }, (_, index) => ({
    key: `s${index}`,
    label: `Series ${index}`,
    short: `${index}`,
    color: "gray",
    marker: "circle",
  }));
  const long: ChartRow[] = Array.from({ length: 500 }, (_, index) => ({
    x: index,
    values: Object.fromEntries(many.map(({ key }, at) => [key, at + index])),
  }));
  const { container } = renderWithTheme(
    <LineChart
      title="Many"
      rows={long}
      series={many}
      xAxis={{ label: "Time", scale: "time", format: String }}
      valueAxis={{ label: "GiB", format: String }}
    />,
  );
  const plot = container.querySelector("figure .recharts-wrapper");
  expect(plot?.querySelectorAll(".recharts-line")).toHaveLength(20);
  expect(plot?.querySelectorAll("*").length ?? 0).toBeLessThan(600);
});

it("breaks a line at an unknown value instead of drawing through it", () => {
  const values = [1, 2, null, 4, 5];
  const { container } = renderWithTheme(
    <LineChart
      title="Gap"
      rows={values.map((value, x) => ({ x, values: { a: value } }))}
      series={series.slice(0, 1)}
      xAxis={{ label: "Time", scale: "time", format: String }}
      valueAxis={{ label: "GiB", format: String }}
    />,
  );
  const path = container.querySelector(".recharts-line-curve")?.getAttribute("d") ?? "";
  expect(path.match(/M/g)).toHaveLength(2);
});
