import { fileURLToPath } from "node:url";
import type { Page } from "@playwright/test";
import { test as base, expect, type Fleet } from "../fixtures";
import { HugeplanServer } from "../hugeplan-server";

/** The labelled fleet of `make demo DEMO_FLEET=200`, with the two recorded machines. */
const test = base.extend<object, { fleet: Fleet }>({
  fleet: [
    // biome-ignore lint/correctness/noEmptyPattern: Playwright reads the fixture's needs from this pattern
    async ({}, use) => {
      const server = await HugeplanServer.start();
      try {
        await server.seed(200);
        const guestId = await server.sendReport("guest");
        const numaId = await server.sendReport("two-numa-nodes");
        databaseId = await server.nodeNamed("postgresql");
        await use({ server, guestId, numaId });
      } finally {
        await server.stop();
      }
    },
    { scope: "worker", timeout: 400_000 },
  ],
});

/** A synthetic node that runs a database. */
let databaseId = "";

const OUT = fileURLToPath(new URL("../../screenshots/", import.meta.url));

const DATABASE = (buffers: string) => ({
  name: "orders",
  engine: "postgresql",
  settings: { shared_buffers: buffers, max_connections: "200" },
  workload: { active_connections: "32", operations_per_second_per_busy_core: "9000" },
});
const form = (change: Record<string, unknown>) =>
  encodeURIComponent(
    JSON.stringify({
      node: { memory: "64GiB" },
      databases: [DATABASE("8GB")],
      tenants: [{ name: "api", kind: "pod", count: "6", request: "1536Mi", limit: "2Gi" }],
      reservations: {},
      policy: {},
      ...change,
    }),
  );
const TABLE = "5, 42428\n15, 78992\n25, 108078\n45, 127829\n75, 133185";

interface Shot {
  name: string;
  path: (fleet: Fleet) => string;
  arrived: RegExp;
  before?: (page: Page) => Promise<void>;
}

const SHOTS: Shot[] = [
  { name: "overview", path: () => "/", arrived: /memory/ },
  { name: "nodes", path: () => "/nodes", arrived: /As of/ },
  { name: "nodes-nothing-matches", path: () => "/nodes?q=no-such-node", arrived: /Nothing matches/ },
  { name: "node-guest", path: ({ guestId }) => `/nodes/${guestId}`, arrived: /Pools and history/ },
  { name: "node-numa", path: ({ numaId }) => `/nodes/${numaId}`, arrived: /Pools and history/ },
  {
    name: "node-rows",
    path: ({ guestId }) => `/nodes/${guestId}`,
    arrived: /Pools and history/,
    before: async (page) => page.getByRole("tab", { name: "Rows" }).click(),
  },
  {
    name: "node-processes",
    path: ({ numaId }) => `/nodes/${numaId}`,
    arrived: /Pools and history/,
    before: async (page) => page.getByRole("tab", { name: "Processes" }).click(),
  },
  {
    name: "node-runs",
    path: ({ guestId }) => `/nodes/${guestId}`,
    arrived: /Pools and history/,
    before: async (page) => page.getByRole("tab", { name: "Runs" }).click(),
  },
  { name: "fleet-plan", path: () => "/fleet-plans", arrived: /What should/ },
  { name: "compare", path: () => "/compare", arrived: /runs/ },
  {
    name: "planner-as-it-runs",
    path: () => `/planner?node=${databaseId}`,
    arrived: /^(The plan rests on|Every input)/,
  },
  {
    name: "planner-numa",
    path: ({ numaId }) => `/planner?node=${numaId}`,
    arrived: /^(The plan rests on|Every input)/,
  },
  {
    name: "planner-fits",
    path: () => `/planner?form=${form({})}`,
    arrived: /^(The plan rests on|Every input)/,
  },
  {
    name: "planner-does-not-fit",
    path: () => `/planner?form=${form({ databases: [DATABASE("60GB")] })}`,
    arrived: /^(The plan rests on|Every input)/,
  },
  {
    name: "planner-invalid",
    path: () => `/planner?form=${form({ databases: [DATABASE("8 bananas")] })}`,
    arrived: /one input is not valid/,
  },
  {
    name: "planner-table",
    path: () =>
      `/planner?form=${form({ node: { memory: "128GiB" }, databases: [{ ...DATABASE("32GB"), workload: { benefit_table: TABLE } }] })}`,
    arrived: /of the best measured throughput/,
  },
  {
    name: "planner-compare",
    path: () => `/planner?form=${form({})}`,
    arrived: /^(The plan rests on|Every input)/,
    before: async (page) => page.getByRole("button", { name: "Compare" }).click(),
  },
  { name: "evidence", path: () => "/evidence", arrived: /published/ },
  { name: "settings", path: () => "/settings", arrived: /Who may connect/ },
];

const SIZES = [
  { name: "wide", viewport: { width: 1440, height: 900 } },
  { name: "telephone", viewport: { width: 390, height: 844 } },
];

for (const colorScheme of ["light", "dark"] as const) {
  for (const { name: size, viewport } of SIZES) {
    test.describe(`${size}, ${colorScheme}`, () => {
      test.use({ colorScheme, viewport });
      for (const { name, path, arrived, before } of SHOTS) {
        test(name, async ({ signedIn: page, fleet, watch }) => {
          watch.expectErrors(/422/);
          await page.goto(fleet.server.url + path(fleet));
          await expect(page.getByText(arrived).first()).toBeVisible();
          await expect(page.getByRole("status", { name: "Loading" })).toHaveCount(0);
          // Parts that are loaded when they are needed, such as charts.
          await expect(page.locator(".mantine-Skeleton-root")).toHaveCount(0);
          await before?.(page);
          await expect(page.locator(".mantine-Skeleton-root")).toHaveCount(0);
          await page.screenshot({ path: `${OUT}${name}-${size}-${colorScheme}.png` });
          await page.screenshot({ path: `${OUT}${name}-${size}-${colorScheme}-whole.png`, fullPage: true });
        });
      }
    });
  }
}
