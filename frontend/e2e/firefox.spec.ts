import { existsSync } from "node:fs";
import type { Browser, Page } from "puppeteer-core";
import { launch } from "puppeteer-core";
import { browserPath } from "../playwright.config";
import { expect, test } from "./fixtures";

// Playwright drives only a Firefox of its own; puppeteer speaks WebDriver BiDi with the one that the machine has.
const FIREFOX = [process.env.FIREFOX, "/usr/bin/firefox-esr", "/usr/bin/firefox"].find(
  (path) => path !== undefined && existsSync(path),
);
const LIMIT_MS = 60_000;

test.describe("in Firefox", () => {
  let firefox: Browser | undefined;
  test.beforeAll(async () => {
    test.setTimeout(180_000);
    // As root, Firefox starts only with a home of root's.
    if (FIREFOX !== undefined && browserPath !== undefined)
      firefox = await launch({
        browser: "firefox",
        executablePath: FIREFOX,
        headless: true,
        timeout: 120_000,
      });
  });
  test.afterAll(async () => {
    await firefox?.close();
  });

  for (const [width, height] of [
    [1360, 900],
    [390, 844],
  ] as const)
    test(`the pages fit and a plan is signed, ${width} pixels wide`, async ({ fleet }) => {
      test.skip(FIREFOX === undefined, "no Firefox was found; install the package firefox-esr");
      test.setTimeout(400_000);
      if (!firefox) throw new Error("Firefox did not start");
      const { server, numaId, guestId } = fleet;
      const context = await firefox.createBrowserContext();
      const page = await context.newPage();
      page.setDefaultTimeout(LIMIT_MS);
      const problems: string[] = [];
      page.on("pageerror", (error) => problems.push(`script error: ${String(error)}`));
      page.on("console", (message) => {
        if (message.type() === "error") problems.push(`console: ${message.text()}`);
      });
      await page.setViewport({ width, height });
      await page.goto(await server.loginLink());
      await heading(page, /^Overview$/);
      await fits(page, width);
      for (const [path, title] of [
        ["/nodes", /^Nodes$/],
        [`/nodes/${guestId}`, /./],
        [`/nodes/${guestId}?tab=machine`, /./],
        [`/nodes/${numaId}`, /./],
        ["/import", /./],
        ["/evidence", /./],
        ["/settings", /./],
      ] as const) {
        await page.goto(server.url + path);
        await heading(page, title);
        await fits(page, width);
      }
      await page.goto(`${server.url}/planner?node=${numaId}`);
      await click(page, "button", "Keep this plan");
      await heading(page, /^Plan [0-9a-f]{4}(-[0-9a-f]{4}){3}$/);
      await fits(page, width);
      await click(page, "button", "Propose");
      await click(page, "button", "Approve");
      await page.waitForFunction(() => document.querySelector("article")?.textContent.includes("Decided by"));
      await fits(page, width);
      expect(problems).toEqual([]);
      await context.close();
    });
});

async function heading(page: Page, title: RegExp): Promise<void> {
  await page.waitForFunction(
    (source) => new RegExp(source).test(document.querySelector("h1")?.textContent ?? ""),
    {},
    title.source,
  );
}

async function click(page: Page, role: string, name: string): Promise<void> {
  await page.locator(`::-p-aria([name="${name}"][role="${role}"])`).click();
}

/** Nothing is wider than the window. */
async function fits(page: Page, width: number): Promise<void> {
  const wide = await page.evaluate(() => document.documentElement.scrollWidth);
  expect(wide, page.url()).toBeLessThanOrEqual(width);
}
