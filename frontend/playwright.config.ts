import { existsSync } from "node:fs";
import { defineConfig } from "@playwright/test";

const BROWSERS = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];

/** The browser of this machine: CHROMIUM names one by hand. Playwright's own download is never used. */
export const browserPath = [process.env.CHROMIUM, ...BROWSERS].find(
  (path) => path !== undefined && existsSync(path),
);

export default defineConfig({
  testDir: "e2e",
  outputDir: "test-results",
  // One worker: the tests share one real server and its database.
  workers: 1,
  timeout: 120_000,
  expect: { timeout: 30_000 },
  forbidOnly: true,
  reporter: [["./e2e/totals-reporter.ts"]],
  use: {
    headless: true,
    viewport: { width: 1440, height: 900 },
    locale: "en-GB",
    timezoneId: "UTC",
    colorScheme: "light",
    trace: "off",
    screenshot: "only-on-failure",
    launchOptions: {
      executablePath: browserPath,
      args: [
        "--no-sandbox",
        "--disable-gpu",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--no-first-run",
      ],
    },
  },
});
