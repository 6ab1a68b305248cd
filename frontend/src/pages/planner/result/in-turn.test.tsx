import { render, screen } from "@testing-library/react";
import { expect, it } from "vitest";
import { InTurn } from "./in-turn";

it("shows what it has first at once and a newer picture in its turn, the newest only", async () => {
  const { rerender } = render(
    <InTurn>
      <p>plan 1</p>
    </InTurn>,
  );
  expect(screen.getByText("plan 1")).toBeTruthy();
  rerender(
    <InTurn>
      <p>plan 2</p>
    </InTurn>,
  );
  rerender(
    <InTurn>
      <p>plan 3</p>
    </InTurn>,
  );
  expect(screen.getByText("plan 1")).toBeTruthy();
  await screen.findByText("plan 3");
  expect(screen.queryByText("plan 1")).toBeNull();
});
