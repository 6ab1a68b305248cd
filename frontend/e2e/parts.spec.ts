import type { Page } from "@playwright/test";
import { expect, signIn, test } from "./fixtures";

/** What every page starts with; without it there is no page that could ask again. */
const FIRST_FILES = /\/assets\/(index|app|libraries|rolldown-runtime|jsx-runtime)-/;

/** Drops the first request of each file of `kind`, as a network does that changes under way. Returns what was dropped. */
async function dropFirst(page: Page, kind: "css" | "js"): Promise<string[]> {
  const dropped: string[] = [];
  await page.route(`**/assets/*.${kind}`, (route) => {
    const path = new URL(route.request().url()).pathname;
    if (FIRST_FILES.test(path) || dropped.includes(path)) return route.continue();
    dropped.push(path);
    return route.abort();
  });
  return dropped;
}

/** Addresses of style sheets that the page asks for and does not have. */
function unstyled(page: Page): Promise<string[]> {
  return page.evaluate(() => {
    const links = [...document.querySelectorAll<HTMLLinkElement>('link[rel="stylesheet"]')];
    const loaded = new Set(links.filter((link) => link.sheet !== null).map((link) => link.href));
    return links.map((link) => link.href).filter((href) => !loaded.has(href));
  });
}

test.describe("parts of the dashboard that do not arrive", () => {
  test("style sheets dropped once at sign-in are asked for again", async ({ page, fleet, watch }) => {
    watch.expectErrors(/ERR_FAILED/);
    const dropped = await dropFirst(page, "css");
    await signIn(page, await fleet.server.loginLink());
    await page.getByRole("link", { name: "Nodes", exact: true }).click();
    await expect(page.getByRole("heading", { level: 1, name: "Nodes" })).toBeVisible();
    expect(dropped.length).toBeGreaterThan(1);
    expect(await unstyled(page)).toEqual([]);
  });

  test("scripts dropped once are asked for again", async ({ overview: page, watch }) => {
    watch.expectErrors(/ERR_FAILED/);
    const dropped = await dropFirst(page, "js");
    await page.evaluate(() => Object.assign(window, { stayed: true }));
    await page.getByRole("link", { name: "Evidence" }).click();
    await expect(page.getByRole("heading", { level: 1, name: "Evidence" })).toBeVisible();
    expect(dropped.length).toBeGreaterThan(0);
    expect(await page.evaluate(() => "stayed" in window)).toBe(true);
  });

  test("a part that an upgraded server no longer has loads the whole page, once", async ({
    overview: page,
    watch,
  }) => {
    watch.expectErrors(/404|dynamically imported|could not be loaded/);
    await page.route("**/assets/evidence-page-*.js", (route) => route.fulfill({ status: 404 }));
    let loads = 0;
    page.on("load", () => {
      loads += 1;
    });
    await page.getByRole("link", { name: "Evidence" }).click();
    await expect.poll(() => loads).toBe(1);
    const alert = page.getByRole("alert");
    await expect(alert).toContainText("A part of the dashboard could not be loaded");
    await page.unroute("**/assets/evidence-page-*.js");
    await alert.getByRole("button", { name: "Try again" }).click();
    await expect(page.getByRole("heading", { level: 1, name: "Evidence" })).toBeVisible();
    expect(loads).toBe(2);
  });
});
