import { act, screen } from "@testing-library/react";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { When } from "@/components/ui/values";
import { renderWithTheme } from "@/test/render";

beforeEach(() => {
  vi.useFakeTimers({ now: new Date("2026-11-22T12:00:00Z") });
});
afterEach(() => {
  vi.useRealTimers();
});

it("ticks: a moment that was just now is minutes ago without a reload", () => {
  renderWithTheme(<When iso="2026-11-22T11:59:58Z" />);
  expect(screen.getByText("just now")).toBeTruthy();
  act(() => {
    vi.advanceTimersByTime(120_000);
  });
  expect(screen.getByText("2 minutes ago")).toBeTruthy();
});
