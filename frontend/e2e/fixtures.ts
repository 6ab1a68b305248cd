import { test as base, expect, type Page } from "@playwright/test";
import { browserPath } from "../playwright.config";
import { HugeplanServer } from "./hugeplan-server";

/** A server with two recorded nodes: a measured guest, and a machine with two NUMA nodes and pools. */
export interface Fleet {
  server: HugeplanServer;
  guestId: string;
  numaId: string;
}

interface Watch {
  /** Errors of the page that a test causes on purpose. */
  expectErrors: (pattern: RegExp) => void;
}

interface TestFixtures {
  watch: Watch;
  /** A page with a session, at no address yet: a test that begins elsewhere does not load the overview first. */
  signedIn: Page;
  /** A page that is signed in and shows the overview. */
  overview: Page;
}

export const test = base.extend<TestFixtures, { fleet: Fleet }>({
  fleet: [
    // biome-ignore lint/correctness/noEmptyPattern: Playwright reads the fixture's needs from this pattern
    async ({}, use) => {
      const server = await HugeplanServer.start();
      try {
        const guestId = await server.sendReport("guest");
        const numaId = await server.sendReport("two-numa-nodes");
        await use({ server, guestId, numaId });
      } finally {
        await server.stop();
      }
    },
    { scope: "worker", timeout: 200_000 },
  ],

  // Every test fails on a script error, on a broken policy, and on a request to any other machine.
  watch: [
    async ({ page }, use) => {
      const problems: string[] = [];
      // When a network interface of the machine comes or goes, Chromium drops what is under way: not the page's doing.
      const expected: RegExp[] = [/net::ERR_NETWORK_CHANGED/];
      page.on("pageerror", (error) => problems.push(`script error: ${error.message}`));
      page.on("console", (message) => {
        if (message.type() === "error") problems.push(`console: ${message.text()}`);
      });
      page.on("request", (request) => {
        const url = new URL(request.url());
        if (!["127.0.0.1", ""].includes(url.hostname)) problems.push(`request to ${url.hostname}`);
      });
      await use({ expectErrors: (pattern) => expected.push(pattern) });
      expect(problems.filter((problem) => !expected.some((pattern) => pattern.test(problem)))).toEqual([]);
    },
    { auto: true },
  ],

  signedIn: async ({ page, fleet }, use) => {
    await page.context().addCookies([await fleet.server.sessionCookie()]);
    await use(page);
  },

  overview: async ({ signedIn: page, fleet }, use) => {
    await page.goto(fleet.server.url);
    await expect(page.getByRole("heading", { level: 1, name: "Overview" })).toBeVisible();
    await use(page);
  },
});

test.beforeEach(() => {
  test.skip(browserPath === undefined, "no Chromium or Chrome was found; install the package chromium");
});

export async function signIn(page: Page, link: string): Promise<void> {
  await page.goto(link);
  // On a telephone the menu is folded away; the page's own title is there on every screen.
  await expect(page.getByRole("heading", { level: 1, name: "Overview" })).toBeVisible();
}

export { expect };
