import { useQuery } from "@tanstack/react-query";
import { screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it, vi } from "vitest";
import { renderWithTheme } from "@/test/render";
import { QueryView } from "./query-view";

function View({ load }: { load: () => Promise<string> }) {
  const query = useQuery({ queryKey: ["test"], queryFn: load });
  return (
    <QueryView query={query} skeleton={<span>skeleton</span>}>
      {(text) => <p>{text}</p>}
    </QueryView>
  );
}

it("goes from skeleton over error to data", async () => {
  const load = vi
    .fn<() => Promise<string>>()
    .mockRejectedValueOnce(new Error("away"))
    .mockResolvedValueOnce("here");
  renderWithTheme(<View load={load} />);
  expect(screen.getByRole("status", { name: "Loading" }).textContent).toBe("skeleton");
  await userEvent.click(await screen.findByRole("button", { name: "Try again" }));
  expect(await screen.findByText("here")).toBeTruthy();
  expect(screen.queryByRole("alert")).toBeNull();
});
