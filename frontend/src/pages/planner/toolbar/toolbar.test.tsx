import {
  createMemoryHistory,
  createRootRoute,
  createRoute,
  createRouter,
  RouterProvider,
} from "@tanstack/react-router";
import { screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { beforeEach, expect, it, vi } from "vitest";
import type { Scenario } from "@/api/types";
import { renderWithTheme } from "@/test/render";
import { initialForm } from "../draft/planner-form";
import { Toolbar, type ToolbarProps } from "./toolbar";

const scenario = (version: number) =>
  ({
    id: "s-1",
    name: "orders",
    node_id: null,
    version,
    scenario: {},
    updated_at: "2026-01-01T00:00:00Z",
  }) as unknown as Scenario;

/** What the service answers, by method and path, and what it was sent. */
let sent: { method: string; path: string; body: unknown }[];
let answers: Record<string, { status: number; body: unknown }>;
beforeEach(() => {
  sent = [];
  answers = { "GET /api/v1/scenarios": { status: 200, body: { items: [], next_cursor: null } } };
  vi.stubGlobal("scrollTo", () => undefined);
  vi.stubGlobal("fetch", async (request: Request) => {
    const path = new URL(request.url).pathname;
    const text = await request.text();
    sent.push({ method: request.method, path, body: text ? JSON.parse(text) : null });
    const { status, body } = answers[`${request.method} ${path}`] ?? {
      status: 404,
      body: { title: "Not found" },
    };
    return new Response(JSON.stringify(body), { status, headers: { "Content-Type": "application/json" } });
  });
});

async function show(change: Partial<ToolbarProps> = {}) {
  const props: ToolbarProps = {
    base: null,
    stored: null,
    isDirty: true,
    mayPlan: true,
    current: () => ({ draft: { form: initialForm(), nodeId: null }, scenario: { databases: [] } }),
    address: () => "http://localhost/planner#draft=x",
    canUndo: false,
    canRedo: false,
    onUndo: vi.fn(),
    onRedo: vi.fn(),
    onSaved: vi.fn(),
    onLoad: vi.fn(),
    onNew: vi.fn(),
    isComparing: false,
    onCompare: vi.fn(),
    ...change,
  };
  const root = createRootRoute();
  const planner = createRoute({
    getParentRoute: () => root,
    path: "/planner",
    component: () => <Toolbar {...props} />,
  });
  const history = createMemoryHistory({ initialEntries: ["/planner"] });
  const router = createRouter({ routeTree: root.addChildren([planner]), history });
  renderWithTheme(<RouterProvider router={router as never} />);
  await screen.findByRole("button", { name: "Share" });
  return props;
}

it("offers who may not plan nothing that saves, and says why", async () => {
  await show({ mayPlan: false, base: scenario(1), stored: scenario(1) });
  for (const name of ["Save", "Save as", "Delete", "Plan the fleet"])
    expect(screen.queryByRole("button", { name })).toBeNull();
  expect(screen.getByText("Your role may try plans and not save them.")).toBeTruthy();
});

it("saves over the version that the form rests on, and only what changed", async () => {
  answers["PUT /api/v1/scenarios/s-1"] = { status: 200, body: scenario(4) };
  const { onSaved } = await show({ base: scenario(3), stored: scenario(3) });
  await userEvent.click(screen.getByRole("button", { name: "Save" }));
  await waitFor(() => expect(onSaved).toHaveBeenCalled());
  expect(sent.find(({ method }) => method === "PUT")?.body).toMatchObject({
    name: "orders",
    scenario: { databases: [] },
  });
});

it("has nothing to save where nothing was edited", async () => {
  await show({ base: scenario(3), stored: scenario(3), isDirty: false });
  expect(screen.getByRole("button", { name: "Save" }).hasAttribute("disabled")).toBe(true);
  expect(screen.getByText("Saved, version 3.")).toBeTruthy();
});

it("says who was first, and offers theirs, mine, and another name", async () => {
  answers["PUT /api/v1/scenarios/s-1"] = { status: 412, body: { title: "Changed", status: 412 } };
  answers["GET /api/v1/scenarios/s-1"] = { status: 200, body: scenario(5) };
  const { onLoad } = await show({ base: scenario(3), stored: scenario(3) });
  await userEvent.click(screen.getByRole("button", { name: "Save" }));
  expect(await screen.findByText(/somebody changed this scenario/)).toBeTruthy();
  await userEvent.click(await screen.findByRole("button", { name: "Load version 5, drop mine" }));
  expect(onLoad).toHaveBeenCalledWith(scenario(5));
  expect(screen.getByRole("button", { name: "Save mine under another name" })).toBeTruthy();
});

it("tells of a version that was saved meanwhile, and drops no edit for it", async () => {
  const { onLoad } = await show({ base: scenario(3), stored: scenario(4) });
  expect(screen.getByText("Version 4 was saved meanwhile. Your changes are kept.")).toBeTruthy();
  expect(onLoad).not.toHaveBeenCalled();
});
