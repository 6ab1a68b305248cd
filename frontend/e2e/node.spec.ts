import { readFile } from "node:fs/promises";
import { expect, test } from "./fixtures";

test.describe("a node's page", () => {
  test("begins with its findings, and the header agrees with the TLB picture", async ({
    signedIn: page,
    fleet,
  }) => {
    // As recorded its pools are idle, and the header says that first: here a database holds them.
    const recorded = JSON.parse(await readFile(new URL("./recorded/guest.json", import.meta.url), "utf8"));
    const pools = recorded.sample.pools.map((pool: object) => ({ ...pool, free_hugepages: 0 }));
    const id = await fleet.server.sendReport("guest", {
      report_id: crypto.randomUUID(),
      machine_id: "0123456789abcdef0123456789abcdef",
      node_name: "used-pools",
      sample: { ...recorded.sample, pools },
    });
    try {
      await page.goto(`${fleet.server.url}/nodes/${id}`);
      const headings = page.getByRole("heading", { level: 2 });
      await expect(headings.first()).toHaveText(/wrong|attention/);
      await expect(
        page.locator("header").getByText(/reach does not grow: one entry covers 4\sKiB/),
      ).toBeVisible();
      // Every size reaches as far as base pages: the host backs the larger ones with 4K.
      const picture = page.getByRole("region", { name: "TLB levels by page size" });
      await expect(picture.getByText(/^Reach /).first()).toBeVisible();
      await expect(page.getByRole("figure", { name: /^Latency by page size/ })).toBeVisible();
    } finally {
      await fleet.server.deleteNode(id);
    }
  });

  test("has its rest in tabs, by keyboard, and the address holds the tab", async ({
    signedIn: page,
    fleet,
  }) => {
    await page.goto(`${fleet.server.url}/nodes/${fleet.guestId}`);
    await page.getByRole("tab", { name: "Pools and history" }).focus();
    await page.keyboard.press("ArrowRight");
    await expect(page.getByRole("tab", { name: "Processes" })).toHaveAttribute("aria-selected", "true");
    await page.keyboard.press("ArrowRight");
    await expect(page).toHaveURL(/tab=rows/);
    await expect(page.getByRole("figure", { name: /^Rows per second/ })).toBeVisible();
    await expect(page.getByRole("figure", { name: /^Page tables/ })).toBeVisible();
    await page.reload();
    await expect(page.getByRole("tab", { name: "Rows" })).toHaveAttribute("aria-selected", "true");
    await page.getByRole("tab", { name: "Raw report" }).click();
    await expect(page.getByRole("region", { name: "Raw report" })).toContainText('"schema_version"');
  });

  test("that was not measured says what is unknown", async ({ signedIn: page, fleet }) => {
    await page.goto(`${fleet.server.url}/nodes/${fleet.numaId}?tab=rows`);
    await expect(
      page.getByRole("heading", { name: "Unknown: rows read per second. This node has not been measured." }),
    ).toBeVisible();
    await page.getByRole("tab", { name: "Processes" }).click();
    await expect(page.getByRole("row", { name: /postgres/ }).first()).toContainText("1.62");
  });
});
