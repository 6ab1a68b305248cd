import { MantineProvider } from "@mantine/core";
import { render, screen } from "@testing-library/react";
import { expect, it } from "vitest";
import { IntervalChart, intervalDomain } from "./interval-chart";

it("keeps zero on the axis", () => {
  expect(intervalDomain([{ range: { low: 5, likely: 6, high: 9 } }])).toEqual([0, 9]);
  expect(intervalDomain([{ range: { low: -3, likely: 1, high: 2 } }])).toEqual([-3, 2]);
  expect(intervalDomain([{ range: { low: 1, likely: 2, high: 3 }, mark: 8 }])).toEqual([0, 8]);
  expect(intervalDomain([{ range: null }])).toEqual([0, 1]);
});

it("writes the figures beside the bars and an unknown as the word", () => {
  render(
    <MantineProvider>
      <IntervalChart
        title="Gain"
        nameHeader="Page size"
        valueHeader="Saving"
        format={(value) => `${value} ns`}
        rows={[
          { key: "a", name: "2M", range: { low: 10, likely: 20, high: 40 }, color: "blue" },
          { key: "b", name: "1G", range: null, color: "violet", why: "no curve" },
        ]}
      />
    </MantineProvider>,
  );
  expect(screen.getByRole("row", { name: /^2M 20 ns\s*10 ns to 40 ns$/ })).toBeTruthy();
  expect(screen.getByRole("row", { name: /^1G unknown unknown/ })).toBeTruthy();
});

it("names a bar that Tab reaches for its hint", () => {
  render(
    <MantineProvider>
      <IntervalChart
        title="Gain"
        nameHeader="Page size"
        valueHeader="Saving"
        format={(value) => `${value} ns`}
        rows={[
          {
            key: "a",
            name: "4K",
            range: { low: 10, likely: 20, high: 40 },
            color: "blue",
            detail: "of 3 runs",
          },
          {
            key: "b",
            name: "2M",
            range: { low: 30, likely: 30, high: 30 },
            color: "violet",
            detail: "of 1 run",
          },
        ]}
      />
    </MantineProvider>,
  );
  const stops = document.querySelectorAll("[tabindex='0']");
  expect([...stops].map(({ textContent }) => textContent)).toEqual(["20 ns, 10 ns to 40 ns", "30 ns"]);
});
