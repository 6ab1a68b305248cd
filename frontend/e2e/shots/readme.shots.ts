import { fileURLToPath } from "node:url";
import { test as base, expect, type Fleet } from "../fixtures";
import { HugeplanServer } from "../hugeplan-server";

/** The four pictures of the README: the labelled synthetic fleet alone. docs/images has them at 1200 pixels, by hand. */
const test = base.extend<object, { fleet: Fleet }>({
  fleet: [
    // biome-ignore lint/correctness/noEmptyPattern: Playwright reads the fixture's needs from this pattern
    async ({}, use) => {
      const server = await HugeplanServer.start();
      try {
        await server.seed(200);
        const nodeId = await server.nodeNamed("postgresql");
        await use({ server, guestId: nodeId, numaId: nodeId });
      } finally {
        await server.stop();
      }
    },
    { scope: "worker", timeout: 400_000 },
  ],
});

const OUT = fileURLToPath(new URL("../../screenshots/readme-", import.meta.url));
const VIEWPORT = { width: 1440, height: 1000 };

test.describe("the README's pictures", () => {
  test.use({ viewport: VIEWPORT, colorScheme: "light" });

  for (const { name, path, arrived } of [
    { name: "overview", path: () => "/", arrived: /Which machines are these/ },
    { name: "node", path: (id: string) => `/nodes/${id}`, arrived: /Pools and history/ },
    {
      name: "planner",
      path: (id: string) => `/planner?node=${id}`,
      arrived: /^(The plan rests on|Every input)/,
    },
  ])
    test(name, async ({ signedIn: page, fleet }) => {
      await page.goto(fleet.server.url + path(fleet.guestId));
      await expect(page.getByText(arrived).first()).toBeVisible();
      await expect(page.locator(".mantine-Skeleton-root")).toHaveCount(0);
      await page.screenshot({ path: `${OUT}${name}.png` });
    });
});

test.describe("the README's dark picture", () => {
  test.use({ viewport: VIEWPORT, colorScheme: "dark" });

  test("planner-dark", async ({ signedIn: page, fleet }) => {
    const put = await page.request.put(`${fleet.server.url}/api/v1/nodes/${fleet.guestId}/plan-in-force`, {
      headers: { Authorization: `Bearer ${await fleet.server.token("admin")}` },
      data: { pools: [{ page_bytes: 2 * 2 ** 20, pages: 12_000 }] },
    });
    expect(put.status(), await put.text()).toBeLessThan(300);
    await page.goto(`${fleet.server.url}/planner?node=${fleet.guestId}`);
    await expect(page.getByText(/^(The plan rests on|Every input)/).first()).toBeVisible();
    await page.getByRole("button", { name: "Compare" }).click();
    await expect(page.getByRole("columnheader", { name: "Plan in force" })).toBeVisible();
    await expect(page.locator(".mantine-Skeleton-root")).toHaveCount(0);
    await page.screenshot({ path: `${OUT}planner-dark.png` });
  });
});
