import { render, screen } from "@testing-library/react";
import { expect, it } from "vitest";
import { RangeBar } from "./range-bar";

const zeroAt = (low: number, likely: number, high: number) => {
  const { unmount } = render(<RangeBar range={{ low, likely, high }} format={String} />);
  const at = Number.parseFloat(screen.getByText("0", { exact: true }).style.left);
  unmount();
  return at;
};

it("marks where the gain is nothing, wherever the range lies", () => {
  expect(zeroAt(-1, 1, 3)).toBe(25);
  expect(zeroAt(2, 3, 4)).toBe(0);
  expect(zeroAt(-4, -3, -2)).toBeCloseTo(80, 0);
  expect(Number.isFinite(zeroAt(0, 0, 0))).toBe(true);
});
