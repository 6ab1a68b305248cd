import { useQuery, useQueryClient } from "@tanstack/react-query";
import { screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it, vi } from "vitest";
import { networkError } from "@/api/problem";
import { renderWithTheme } from "@/test/render";
import { ServerAway } from "./server-away";

function Page({ load }: { load: () => Promise<string> }) {
  const client = useQueryClient();
  const { data } = useQuery({ queryKey: ["page"], queryFn: load });
  return (
    <>
      <ServerAway />
      <p>{data}</p>
      <button type="button" onClick={() => void client.invalidateQueries()}>
        refresh
      </button>
    </>
  );
}

it("says that what is shown is old while the server is away, and leaves when it is back", async () => {
  const load = vi
    .fn<() => Promise<string>>()
    .mockResolvedValueOnce("first")
    .mockRejectedValueOnce(networkError())
    .mockResolvedValueOnce("second");
  renderWithTheme(<Page load={load} />);
  await screen.findByText("first");
  expect(screen.queryByRole("alert")).toBeNull();
  await userEvent.click(screen.getByRole("button", { name: "refresh" }));
  expect((await screen.findByRole("alert")).textContent).toContain("was loaded before");
  expect(screen.getByText("first")).toBeTruthy();
  await userEvent.click(screen.getByRole("button", { name: "Try again" }));
  await screen.findByText("second");
  expect(screen.queryByRole("alert")).toBeNull();
});

it("leaves a failure without data to its own place", async () => {
  const load = vi.fn<() => Promise<string>>().mockRejectedValue(networkError());
  renderWithTheme(<Page load={load} />);
  await vi.waitFor(() => expect(load).toHaveBeenCalled());
  expect(screen.queryByRole("alert")).toBeNull();
});
