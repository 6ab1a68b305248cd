import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { totalmem } from "node:os";
import { fileURLToPath } from "node:url";
import type { Page } from "@playwright/test";
import { browserPath } from "../playwright.config";
import { expect, signIn, test } from "./fixtures";
import { HugeplanServer } from "./hugeplan-server";

const GIB = 2 ** 30;
const TLBBENCH = fileURLToPath(new URL("../../agent/build/tlbbench", import.meta.url));
/** 8 GiB are 4096 pages of 2 MiB. What PostgreSQL adds for 100 connections, and 1 % of slack, stays below 6 %. */
const POOL_PAGES = 4096;
const MOST_PAGES = Math.ceil(POOL_PAGES * 1.06);

/** From an empty fleet to a file that can be applied, on this very machine: one person's first visit. */
test.describe
  .serial("the first visit", () => {
    let server: HugeplanServer;
    test.beforeAll(async () => {
      if (browserPath !== undefined) server = await HugeplanServer.start();
    });
    test.afterAll(async () => {
      await server?.stop();
    });

    test("the login link signs in and takes the token out of the address", async ({ page }) => {
      await page.goto(await server.loginLink());
      await expect(page.getByRole("heading", { level: 1, name: "Overview" })).toBeVisible();
      expect(page.url()).toBe(`${server.url}/`);
      await page.goBack();
      expect(page.url()).not.toContain("token");
    });

    test("an empty fleet shows three ways to begin, and waits for the first report", async ({ page }) => {
      await signIn(page, await server.loginLink());
      await expect(page.getByText(/^Waiting for the first report/)).toBeVisible();
      for (const way of ["1. With an agent", "2. With a dump", "3. By hand"])
        await expect(page.getByRole("heading", { name: way })).toBeVisible();
      const command = page.locator("code").first();
      await expect(command).toContainText(`--server ${server.url}`);
      await page.getByRole("button", { name: "Enrolment token for 7 days" }).click();
      // The token is shown to be typed, and is not part of a command that a shell would remember.
      await expect(command).not.toContainText(/hp_/);
      await expect(page.locator("code").nth(1)).toContainText(/hp_[\w-]{20,}/);
    });

    test("a report from a real agent makes this machine a node", async ({ page }) => {
      test.skip(!existsSync(TLBBENCH), "agent/build/tlbbench is not built; run make agent");
      test.setTimeout(240_000);
      await server.runAgent();
      await signIn(page, await server.loginLink());
      await page.getByRole("link", { name: "Nodes", exact: true }).click();
      // The overview has rows with links of its own.
      await expect(page.getByRole("heading", { level: 1, name: "Nodes" })).toBeVisible();
      const row = page.getByRole("row").nth(1);
      await expect(row).toContainText("GiB");
      await row.getByRole("link").click();
      await expect(page.getByRole("group", { name: /^Memory of / })).toBeVisible();
      await page.getByRole("tab", { name: "Machine" }).click();
      await expect(page.getByRole("heading", { name: "What is this machine?" })).toBeVisible();
      await expect(page.getByRole("region", { name: "TLB levels by page size" })).toContainText("entries");
      // On a busy machine a quick run may end before its latency part; the page then says so.
      const latency = page.getByRole("figure", { name: /^Latency by page size/ });
      await expect(latency.or(page.getByText("This run has no latency curves"))).toBeVisible();
    });

    test("PostgreSQL with shared_buffers = 8GB gives a sysctl file to download", async ({ page }) => {
      const describeNode = totalmem() < 12 * GIB || !existsSync(TLBBENCH);
      await signIn(page, await server.loginLink());
      if (describeNode) {
        await page.goto(`${server.url}/planner`);
      } else {
        await page.goto(`${server.url}/nodes`);
        await page.getByRole("row").nth(1).getByRole("link").click();
        await page.getByRole("link", { name: "Plan this node" }).click();
      }
      // A machine that runs databases brings them; this plan is for one that is to come.
      await expect(page.getByRole("button", { name: "Add a database" })).toBeVisible();
      const remove = page.getByRole("button", { name: /^Remove the database/ });
      // The form's own first database gives way to those of the machine; the answer comes after that.
      await expect(page.getByRole("region", { name: "The answer" })).toBeVisible();
      await expect(async () => {
        if ((await remove.count()) > 0) await remove.first().click({ timeout: 1000 });
        expect(await remove.count()).toBe(0);
      }).toPass();
      await page.getByRole("button", { name: "Add a database" }).click();
      const database = page.getByRole("group", { name: "Database main" });
      await expect(database.getByRole("combobox", { name: "Engine" })).toHaveValue("PostgreSQL");
      // sysctl is for pages of the default size; what this machine measured may speak for others.
      await database.getByRole("combobox", { name: "Page size" }).selectOption({ label: "2M" });
      await database.getByRole("textbox", { name: "shared_buffers" }).fill("8GB");
      const pages = await plannedPages(page, POOL_PAGES);
      expect(pages).toBeGreaterThan(POOL_PAGES);
      expect(pages).toBeLessThan(MOST_PAGES);

      await page.getByRole("button", { name: "Keep this plan" }).click();
      // The recommended way comes first; sysctl is another way, and has a tab once it is chosen.
      await page.getByRole("combobox", { name: "Another way to apply it" }).selectOption({ label: "sysctl" });
      await expect(page.getByRole("tab", { name: "sysctl" })).toHaveAttribute("aria-selected", "true");
      const downloading = page.waitForEvent("download");
      await page.getByRole("link", { name: "Download" }).click();
      const download = await downloading;
      expect(download.suggestedFilename()).toMatch(/\.conf$/);
      const lines = (await readFile(await download.path(), "utf8")).split("\n");
      expect(lines).toContain(`vm.nr_hugepages = ${pages}`);
      for (const line of lines) expect(line).toMatch(/^(#.*|[\w.]+ = \d+|)$/);
    });
  });

/** The pages the answer says to reserve, once it is above `least`: the plan follows the typing. */
async function plannedPages(page: Page, least: number): Promise<number> {
  const answer = page.getByRole("region", { name: "The answer" });
  const read = async () => {
    const text =
      (await answer
        .getByText(/[\d,]+\s×\s2M$/)
        .first()
        .textContent()) ?? "";
    return Number(text.split("→").at(-1)?.split("×")[0]?.replaceAll(/[^\d]/g, ""));
  };
  await expect.poll(read).toBeGreaterThan(least);
  return read();
}
