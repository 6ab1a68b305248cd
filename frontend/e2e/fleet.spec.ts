import { expect, test } from "./fixtures";
import { HugeplanServer } from "./hugeplan-server";

/** As many as the dashboard is made for. They are stored in bulk. */
const NODES = 10_000;
const TOTAL = "10,000";

let server: HugeplanServer;

test.beforeAll(async () => {
  test.setTimeout(240_000);
  server = await HugeplanServer.start();
  await server.seed(NODES, "newest state only");
});

test.afterAll(async () => {
  await server?.stop();
});

test.beforeEach(async ({ page }) => {
  await page.context().addCookies([await server.sessionCookie()]);
});

test("the overview counts every node, and leads from a finding to its nodes", async ({ page }) => {
  await page.goto(`${server.url}/`);
  await expect(page.getByText(new RegExp(`of ${TOTAL} nodes`))).toBeVisible();
  await expect(page.getByText(/All of them are synthetic/)).toBeVisible();
  const problems = page.getByRole("region", { name: "Which nodes need attention?" });
  const nodes = problems.getByRole("link", { name: /^[\d,]+ nodes?$/ }).first();
  const count = (await nodes.textContent())?.split(" ")[0];
  await nodes.click();
  await expect(page).toHaveURL(/finding=/);
  await expect(page.getByText(`${count} of ${TOTAL} nodes match`)).toBeVisible();
});

test("all nodes are scrolled through with few rows in the document, to the very last", async ({ page }) => {
  await page.goto(`${server.url}/nodes`);
  const table = page.getByRole("table");
  await expect(table).toHaveAttribute("aria-rowcount", String(NODES + 1));
  await expect(page.getByRole("row")).not.toHaveCount(0);
  const box = page.getByRole("region", { name: "Nodes" });
  await box.evaluate((element) => element.scrollTo({ top: element.scrollHeight }));
  const last = page.locator(`tr[aria-rowindex="${NODES + 1}"]`);
  await expect(last.getByRole("link")).toBeVisible();
  expect(await page.getByRole("row").count()).toBeLessThan(80);
});

test("the server sorts and filters, and the address keeps it", async ({ page }) => {
  await page.goto(`${server.url}/nodes`);
  await page.getByRole("button", { name: "Idle", exact: true }).click();
  await expect(page).toHaveURL(/sort=pool_idle_bytes/);
  const idle = page.getByRole("columnheader", { name: "Idle", exact: true });
  await expect(idle).toHaveAttribute("aria-sort", "descending");
  // The help beside the header is a control of its own: by keyboard it explains, and sorts nothing.
  await page.getByRole("button", { name: "Idle", exact: true }).focus();
  await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  await expect(page.getByRole("dialog", { name: "Idle" })).toContainText("Linux kernel, HugeTLB Pages");
  await page.keyboard.press("Escape");
  await expect(idle).toHaveAttribute("aria-sort", "descending");
  const first = page.locator('tr[aria-rowindex="2"]').getByRole("rowheader");
  // The old order stays, grey, until the new one is there.
  await expect(page.locator('[data-stale="false"]')).toBeVisible();
  await expect(first).not.toContainText("loading");
  const name = await first.getByRole("link").textContent();
  await page.reload();
  await expect(first.getByRole("link")).toHaveText(name ?? "");
  await page.getByLabel("Search by name").fill(name ?? "");
  await expect(page.getByText(`1 of ${TOTAL} nodes match`)).toBeVisible();
  await expect(page.getByRole("row")).toHaveCount(2);
});

test("columns are chosen into the address, and the CSV has what is selected", async ({ page }) => {
  await page.goto(`${server.url}/nodes?machine_type=no-such-machine`);
  await expect(page.getByText("Nothing matches")).toBeVisible();
  await page.getByRole("button", { name: "Clear filters" }).click();
  await page.getByRole("button", { name: "Columns" }).click();
  await page.getByRole("menuitem", { name: "Show Labels" }).click();
  await expect(page.getByRole("columnheader", { name: "Labels" })).toBeVisible();
  await expect(page).toHaveURL(/columns=/);
  await page.keyboard.press("Escape");
  await page.goto(`${server.url}/nodes?finding=pool_idle`);
  const headline = await page.getByText(new RegExp(`of ${TOTAL} nodes match`)).textContent();
  const download = page.waitForEvent("download");
  await page.getByRole("link", { name: "CSV", exact: true }).click();
  const stream = await (await download).createReadStream();
  let text = "";
  for await (const part of stream) text += String(part);
  expect(text.trim().split("\n").length - 1).toBe(Number(headline?.split(" ")[0]?.replace(",", "")));
});

test("like nodes are one group, and a group leads to its nodes", async ({ page }) => {
  await page.goto(`${server.url}/nodes?view=groups`);
  const count = page.getByRole("region", { name: "Groups of like nodes" }).getByRole("link").first();
  const nodes = await count.textContent();
  await count.click();
  await expect(page.getByText(`${nodes} of ${TOTAL} nodes match`)).toBeVisible();
});

test("a fleet plan is begun from a selection, left, found again, and read", async ({ page }) => {
  await server.saveScenario("orders", "8GB");
  await page.goto(`${server.url}/nodes?finding=pool_idle`);
  const nodes = (await page.getByRole("link", { name: /^Fleet plan for/ }).textContent())?.match(
    /[\d,]+/,
  )?.[0];
  await page.getByRole("link", { name: /^Fleet plan for/ }).click();
  await expect(page.getByText(/with the finding pool_idle/)).toBeVisible();
  await page.getByRole("combobox", { name: "What they run" }).click();
  await page.getByRole("option", { name: "orders" }).click();
  await page.getByLabel("Name of the plan").fill("spring");
  const asked: string[] = [];
  page.on("request", (request) => asked.push(new URL(request.url()).pathname));
  await page.getByRole("button", { name: `Plan ${nodes} nodes` }).click();
  await expect(page.getByRole("heading", { level: 1, name: "spring" })).toBeVisible();
  await page.getByRole("link", { name: "Overview" }).click();
  // The plan's own page has such a link, too, until the overview is there.
  await expect(page.getByRole("heading", { level: 1, name: "Overview" })).toBeVisible();
  await page.getByRole("link", { name: "Fleet plan", exact: true }).click();
  await page.getByRole("link", { name: "spring" }).click();
  await expect(page.getByText(/the plans reserve/)).toBeVisible({ timeout: 100_000 });
  // It was followed as it got on, not asked for again and again.
  expect(asked.some((path) => path.endsWith("/progress"))).toBe(true);
  expect(asked.filter((path) => /\/fleet\/plans\/[^/]+$/.test(path)).length).toBeLessThan(8);
  const groups = page.getByRole("region", { name: "Groups of the plan" });
  await groups.getByRole("button", { name: /×/, expanded: false }).first().click();
  await expect(page).toHaveURL(/group=/);
  await expect(groups.getByRole("region", { name: "Nodes of the plan" }).getByRole("row")).not.toHaveCount(1);
});

test("nodes are planned as they run, without a scenario, and a group's files are saved", async ({ page }) => {
  await page.goto(`${server.url}/nodes?finding=pool_idle`);
  await page.getByRole("link", { name: /^Fleet plan for/ }).click();
  await page.getByRole("button", { name: /^Plan [\d,]+ nodes$/ }).click();
  await expect(page.getByRole("heading", { level: 1, name: "Each node as it runs" })).toBeVisible();
  const groups = page.getByRole("region", { name: "Groups of the plan" });
  await expect(groups.getByRole("row").nth(1)).toBeVisible({ timeout: 100_000 });
  // The page is read, not scrolled through.
  expect(await page.evaluate(() => document.documentElement.scrollHeight)).toBeLessThan(6_000);
  const saved = page.waitForEvent("download");
  await groups
    .getByRole("link", { name: /^zip of the files/ })
    .first()
    .click();
  expect((await saved).suggestedFilename()).toMatch(/^hugeplan-group-\d+-.*\.zip$/);
});

test("the planner's scenario is saved and planned for the fleet, and the plan is cancelled", async ({
  page,
}) => {
  await page.goto(`${server.url}/planner`);
  await page.getByRole("textbox", { name: "shared_buffers" }).fill("6GB");
  await page.getByRole("button", { name: "Plan the fleet" }).click();
  const dialog = page.getByRole("dialog");
  await expect(dialog).toContainText("A fleet plan is made of a saved scenario.");
  await dialog.getByLabel("Name").fill("six");
  await dialog.getByRole("button", { name: "Save" }).click();
  // It never takes the whole fleet by itself.
  await page.getByRole("link", { name: `Take all ${TOTAL} nodes` }).click();
  await expect(page.getByRole("combobox", { name: "What they run" })).toHaveValue("six");
  await page.getByRole("button", { name: `Plan ${TOTAL} nodes` }).click();
  await page.getByRole("button", { name: "Cancel" }).click();
  await expect(page.getByRole("heading", { name: "The plan was cancelled" })).toBeVisible();
});

test("one of many nodes is found by its name in the planner, and planned as it runs", async ({ page }) => {
  const id = await server.nodeNamed("postgresql");
  await page.goto(`${server.url}/nodes/${id}`);
  const name = (await page.getByRole("heading", { level: 1 }).textContent()) ?? "";
  await page.goto(`${server.url}/planner`);
  await page.getByRole("combobox", { name: "Node" }).click();
  await page.getByRole("combobox", { name: "Node" }).fill(name);
  await page.getByRole("option", { name, exact: true }).click();
  await expect(page.getByText("as it runs today").first()).toBeVisible();
  await expect(page.getByTestId("plan-headline")).toContainText(name);
});
