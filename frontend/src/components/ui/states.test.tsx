import { screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it, vi } from "vitest";
import { ApiError } from "@/api/problem";
import { renderWithTheme } from "@/test/render";
import { ErrorState, NothingMatches } from "./states";

it("shows title, detail, fields, id and a retry", async () => {
  const retry = vi.fn();
  const error = new ApiError({
    status: 422,
    type: "about:blank",
    title: "The request has invalid fields",
    detail: "node.memory: expected a size",
    requestId: "req-7",
    fieldErrors: [
      { field: "node.memory", value: "x", expected: "a size such as 64GiB" },
      { field: "node.cpus", value: "x", expected: "a valid integer" },
    ],
  });
  renderWithTheme(<ErrorState error={error} onRetry={retry} />);
  const alert = screen.getByRole("alert");
  expect(alert.textContent).toContain("The request has invalid fields");
  expect(alert.textContent).toContain("node.memory: a size such as 64GiB");
  expect(alert.textContent).toContain("Problem id req-7");
  await userEvent.click(screen.getByRole("button", { name: "Try again" }));
  expect(retry).toHaveBeenCalledOnce();
});

it("does not list the one field that the sentence is about", () => {
  const error = new ApiError({
    status: 422,
    type: "about:blank",
    title: "The request has invalid fields",
    detail: "name: expected at most 253 characters, got sss.",
    requestId: null,
    fieldErrors: [{ field: "name", value: "sss", expected: "at most 253 characters" }],
  });
  renderWithTheme(<ErrorState error={error} />);
  expect(screen.getByRole("alert").textContent).toContain("name: expected at most 253 characters");
  expect(screen.queryByRole("list")).toBeNull();
});

it("shows no retry where there is nothing to retry", () => {
  renderWithTheme(<ErrorState error={new Error("boom")} />);
  expect(screen.getByRole("alert").textContent).toContain("boom");
  expect(screen.queryByRole("button", { name: "Try again" })).toBeNull();
});

it("offers to clear the filters", async () => {
  const clear = vi.fn();
  renderWithTheme(<NothingMatches what="node" onClear={clear} />);
  await userEvent.click(screen.getByRole("button", { name: "Clear filters" }));
  expect(clear).toHaveBeenCalledOnce();
});
