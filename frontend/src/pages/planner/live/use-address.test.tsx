import {
  createBrowserHistory,
  createRootRoute,
  createRoute,
  createRouter,
  Outlet,
  RouterProvider,
} from "@tanstack/react-router";
import { act, render, screen } from "@testing-library/react";
import { useState } from "react";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import type { Draft } from "../draft/draft";
import { initialForm } from "../draft/planner-form";
import { toFragment } from "./address";
import { formInFragment, isDamaged, useAddress } from "./use-address";

const draftWith = (memory: string): Draft => ({ form: { ...initialForm(), node: { memory } }, nodeId: null });
const memoryInAddress = () => formInFragment(window.location.hash)?.node.memory;

function Page() {
  const [draft, setDraft] = useState(draftWith("64GiB"));
  const [isDirty, setDirty] = useState(false);
  const [damaged, setDamaged] = useState(0);
  const address = useAddress(draft, isDirty, setDraft, () => setDamaged((before) => before + 1));
  return (
    <>
      <output>{draft.form.node.memory}</output>
      <p>damaged: {damaged}</p>
      <button
        type="button"
        onClick={() => {
          setDraft(draftWith("96GiB"));
          setDirty(true);
        }}
      >
        edit
      </button>
      <button type="button" onClick={() => setDirty(false)}>
        save
      </button>
      <button type="button" onClick={() => void address()}>
        share
      </button>
    </>
  );
}

let router: ReturnType<typeof start>;
function start() {
  const root = createRootRoute({ component: Outlet });
  const planner = createRoute({ getParentRoute: () => root, path: "/planner", component: Page });
  const other = createRoute({ getParentRoute: () => root, path: "/other", component: () => <p>other</p> });
  return createRouter({ routeTree: root.addChildren([planner, other]), history: createBrowserHistory() });
}

beforeEach(async () => {
  // The router scrolls; the window of the tests does not know how.
  vi.stubGlobal("scrollTo", () => undefined);
  window.history.replaceState(null, "", "/planner");
  router = start();
  render(<RouterProvider router={router as never} />);
  await screen.findByText("64GiB");
});
afterEach(() => {
  router.history.destroy();
  window.history.replaceState(null, "", "/");
});

const click = async (name: string) => act(async () => screen.getByRole("button", { name }).click());

it("writes nothing before an edit, and the edit into the fragment alone", async () => {
  await click("share");
  expect(window.location.href).toMatch(/\/planner$/);
  await click("edit");
  await click("share");
  expect(memoryInAddress()).toBe("96GiB");
  expect(window.location.search).toBe("");
});

it("takes the draft out of the address once it is saved", async () => {
  await click("edit");
  await click("share");
  await click("save");
  await click("share");
  expect(window.location.hash).toBe("");
});

it("is written again when a link leads to the page itself", async () => {
  await click("edit");
  await act(async () => router.navigate({ to: "/planner" } as never));
  expect(screen.getByText("96GiB")).toBeTruthy();
  expect(memoryInAddress()).toBe("96GiB");
});

it("writes nothing over the address of another page", async () => {
  await click("edit");
  await act(async () => router.navigate({ to: "/other" } as never));
  await screen.findByText("other");
  window.dispatchEvent(new Event("pagehide"));
  expect(window.location.pathname).toBe("/other");
  expect(window.location.hash).toBe("");
});

it("opens a draft that is pasted over the address, and keeps its own over an anchor", async () => {
  await click("edit");
  await act(async () => {
    window.location.hash = toFragment({ form: draftWith("128GiB").form });
    window.dispatchEvent(new HashChangeEvent("hashchange"));
  });
  expect(await screen.findByText("128GiB")).toBeTruthy();
  await act(async () => {
    window.location.hash = "content";
    window.dispatchEvent(new HashChangeEvent("hashchange"));
  });
  expect(memoryInAddress()).toBe("128GiB");
});

it("says once that a pasted draft cannot be read, and keeps the one that is open", async () => {
  await click("edit");
  await act(async () => {
    window.location.hash = `${toFragment({ form: draftWith("128GiB").form }).slice(0, 40)}`;
    window.dispatchEvent(new HashChangeEvent("hashchange"));
  });
  expect(screen.getByText("damaged: 1")).toBeTruthy();
  expect(memoryInAddress()).toBe("96GiB");
});

it("tells a damaged draft from a good one and from none", () => {
  const good = toFragment({ form: draftWith("128GiB").form });
  expect([good, "", "#content"].map(isDamaged)).toEqual([false, false, false]);
  const bad = ["draft=", "#draft=garbage", good.slice(0, -9), toFragment({ other: 1 }), toFragment(null)];
  expect(bad.map(isDamaged)).toEqual(bad.map(() => true));
});
