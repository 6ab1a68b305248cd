import { defineConfig } from "@playwright/test";
import base from "../../playwright.config";

/** `make screenshots`: a picture of every page and state in both themes, to be looked at one by one. */
export default defineConfig({
  ...base,
  testDir: ".",
  testMatch: "*.shots.ts",
  outputDir: "../../test-results/shots",
  reporter: [["../totals-reporter.ts"]],
});
