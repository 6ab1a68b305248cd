import { readFile } from "node:fs/promises";
import { expect, test } from "./fixtures";
import { HugeplanServer } from "./hugeplan-server";

/** From a node as it runs to files, on a labelled synthetic fleet with databases; and with the server away. */
test.describe("a decision", () => {
  let server: HugeplanServer;
  let nodeId: string;
  test.beforeAll(async () => {
    test.setTimeout(400_000);
    server = await HugeplanServer.start();
    await server.seed(12);
    nodeId = await server.nodeNamed("postgresql");
  });
  test.afterAll(async () => {
    await server?.stop();
  });
  test.beforeEach(async ({ page }) => {
    await page.context().addCookies([await server.sessionCookie()]);
  });

  test("starts from the node as it runs, follows a what-if, and ends in files", async ({ page }) => {
    await page.goto(`${server.url}/planner?node=${nodeId}`);
    const database = page.getByRole("group", { name: "Database postgresql" });
    const buffers = database.getByRole("textbox", { name: "shared_buffers" });
    await expect(database).toContainText("as it runs today");
    await expect(buffers).not.toHaveValue("");
    const headline = page.getByTestId("plan-headline");
    const before = await headline.textContent();
    const running = await buffers.inputValue();
    await database.getByRole("slider", { name: "Try another shared_buffers" }).focus();
    await page.keyboard.press("ArrowLeft");
    await expect(buffers).not.toHaveValue(running);
    // What is tried is no longer what runs, and the form says what does.
    await expect(database).not.toContainText("as it runs today");
    await expect(database).toContainText(`edited; today: shared_buffers = ${running}`);
    await expect(headline).not.toHaveText(before ?? "");
    await expect(page.getByRole("region", { name: "The answer" })).toHaveAttribute("data-stale", "false");
    // The files are those of what was kept.
    await expect(page.getByTestId("plan-pictures")).toHaveAttribute("data-stale", "false");
    const pages = /([\d,]+) pages of 2M/.exec((await headline.textContent()) ?? "")?.[1]?.replaceAll(",", "");
    expect(pages).toBeDefined();
    await page.getByRole("button", { name: "Keep this plan" }).click();
    await expect(page.getByTestId("kept-headline")).toContainText(
      `${Number(pages).toLocaleString("en-US")} pages`,
    );
    await page.getByRole("combobox", { name: "Another way to apply it" }).selectOption({ label: "sysctl" });
    const downloading = page.waitForEvent("download");
    await page.getByRole("link", { name: "Download", exact: true }).click();
    const file = await readFile(await (await downloading).path(), "utf8");
    expect(file).toContain(`vm.nr_hugepages = ${pages}`);
  });

  test("keeps no plan that does not fit, and offers what would", async ({ page }) => {
    await page.goto(`${server.url}/planner?node=${nodeId}`);
    await page.getByRole("textbox", { name: "shared_buffers" }).fill("900GB");
    await expect(page.getByTestId("plan-headline")).toContainText("Does not fit");
    // What cannot be installed buys nothing, in view and folded.
    await expect(
      page.getByText(/throughput (likely|against base pages)|age tables (come back|take up to)/),
    ).toHaveCount(0);
    await expect(page.getByTestId("verdict")).toContainText("Don't");
    await expect(page.getByRole("button", { name: "Keep this plan" })).toBeDisabled();
    await page.getByRole("button", { name: /^Use / }).first().click();
    await expect(page.getByTestId("plan-headline")).toContainText("Reserve");
    await expect(page.getByRole("button", { name: "Keep this plan" })).toBeEnabled();
  });

  test("asks for the biggest unknown in place, says its effect, and is surer for the answer", async ({
    page,
  }) => {
    await page.goto(`${server.url}/planner`);
    const answer = page.getByRole("region", { name: "The answer" });
    await expect(answer).toContainText("How sure");
    const field = answer.getByRole("textbox");
    await expect(field).toHaveCount(1);
    await expect(answer.getByText(/^If it is .* instead of/)).toBeVisible();
    const asked = await answer.getByText(/^If it is/).textContent();
    await field.fill("32");
    await answer.getByRole("button", { name: "Use" }).click();
    await expect(answer.getByText(asked ?? "nothing was asked")).toHaveCount(0);
    await expect(answer).toHaveAttribute("data-stale", "false");
  });

  test("shows published shapes, marked as such, where nobody measured the benefit", async ({ page }) => {
    await page.goto(`${server.url}/planner?node=${nodeId}`);
    await page.getByRole("button", { name: /Give its working set to see/ }).click();
    const figure = page.getByRole("figure", { name: /^Published throughput by buffer pool size/ });
    await expect(figure).toContainText("Published, not this workload");
    await page.getByText("Connections, workload and pool range").click();
    await page.getByRole("textbox", { name: "Working set" }).fill("40GiB");
    await expect(page.getByRole("heading", { name: /others reached .*% of their best/ })).toBeVisible();
    await expect(page.getByText(/One GiB more brought/)).toBeVisible();
  });

  test("compares with the node as it is, with the plan in force, and with a saved scenario", async ({
    page,
  }) => {
    const put = await page.request.put(`${server.url}/api/v1/nodes/${nodeId}/plan-in-force`, {
      headers: { Authorization: `Bearer ${await server.token("admin")}` },
      data: { pools: [{ page_bytes: 2 * 2 ** 20, pages: 9001 }] },
    });
    expect(put.status(), await put.text()).toBeLessThan(300);
    await page.goto(`${server.url}/planner?node=${nodeId}`);
    await page.getByRole("textbox", { name: "shared_buffers" }).fill("4GB");
    await page.getByRole("button", { name: "Save", exact: true }).click();
    await page.getByRole("dialog").getByLabel("Name").fill("four");
    await page.getByRole("dialog").getByRole("button", { name: "Save" }).click();
    await expect(page.getByText("Saved, version 1.")).toBeVisible();
    await page.getByRole("textbox", { name: "shared_buffers" }).fill("2GB");
    await page.getByRole("button", { name: "Compare" }).click();
    const table = page.getByRole("region", { name: "Plans side by side" });
    for (const name of ["Now", "This plan", "Plan in force", "four, as saved"])
      await expect(table.getByRole("columnheader", { name, exact: true })).toBeVisible();
    const pages = table.getByRole("row", { name: /^Pages of 2M/ }).getByRole("cell");
    await expect(pages.nth(2)).toHaveText("9,001");
    // Twice the pool, about twice the pages: the columns are plans of their own, not one plan three times.
    const count = async (index: number) =>
      Number(((await pages.nth(index).textContent()) ?? "").replaceAll(/\D/g, ""));
    await expect.poll(() => count(3)).toBeGreaterThan(2 * 1024);
    // The column of this plan is an older answer until the newest is there.
    await expect.poll(async () => (await count(3)) / (await count(1))).toBeGreaterThan(1.8);
  });

  test("a viewer tries plans and sees nothing that saves", async ({ browser }) => {
    const context = await browser.newContext();
    const page = await context.newPage();
    await page.goto(`${server.url}/login`);
    await page.getByLabel("Token").fill(await server.newToken("reader", "viewer"));
    await page.getByRole("button", { name: "Sign in" }).click();
    await expect(page.getByRole("heading", { level: 1, name: "Overview" })).toBeVisible();
    await page.goto(`${server.url}/planner?node=${nodeId}`);
    await expect(page.getByTestId("plan-headline")).toContainText("Reserve");
    await expect(page.getByText("Your role may try plans and not save them.")).toBeVisible();
    await expect(page.getByRole("button", { name: /^(Save|Save as|Delete)$/ })).toHaveCount(0);
    await context.close();
  });

  test("keeps edits while the server is gone, and plans them when it is back", async ({ page, watch }) => {
    watch.expectErrors(/ERR_CONNECTION_REFUSED|Failed to load/);
    test.setTimeout(400_000);
    await page.goto(`${server.url}/planner?node=${nodeId}`);
    const headline = page.getByTestId("plan-headline");
    await expect(headline).toContainText("Reserve");
    await server.goAway();
    await page.getByRole("textbox", { name: "shared_buffers" }).fill("3GB");
    await expect(page.getByRole("alert").first()).toContainText("The server does not answer");
    // The answer to something else is still there, and does not look new.
    await expect(page.getByRole("region", { name: "The answer" })).toHaveAttribute("data-stale", "true");
    await server.comeBack();
    await page.getByRole("button", { name: "Try again" }).first().click();
    await expect(page.getByRole("region", { name: "The answer" })).toHaveAttribute("data-stale", "false");
    await expect(page.getByRole("textbox", { name: "shared_buffers" })).toHaveValue("3GB");
    await expect(headline).toContainText(/Reserve 1,[56]\d\d pages of 2M/);
  });
});
