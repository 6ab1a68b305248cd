import { readFile } from "node:fs/promises";
import { expect, test } from "./fixtures";
import { HugeplanServer } from "./hugeplan-server";
import { withNumaNodes } from "./numa-nodes";

const MOST_CLICKS = 12;
const MOST_SECONDS = 90;

/** A plan from the form to its signature, and what a fleet plan's row opens. */
test.describe("signing a plan", () => {
  let server: HugeplanServer;
  let nodeId: string;
  test.beforeAll(async () => {
    test.setTimeout(400_000);
    server = await HugeplanServer.start();
    await server.seed(6);
    nodeId = await server.nodeNamed("postgresql");
  });
  test.afterAll(async () => {
    await server?.stop();
  });

  test("leads from the login to an approved sheet, the same plan everywhere", async ({ page }) => {
    await page.addInitScript(() => {
      addEventListener(
        "click",
        (event) => {
          // What the reader does, not what a label passes on.
          if (event.isTrusted && event.detail > 0)
            sessionStorage.setItem("clicks", String(Number(sessionStorage.getItem("clicks") ?? 0) + 1));
        },
        { capture: true },
      );
    });
    const token = await server.newToken("dba", "admin");
    const begun = Date.now();
    await page.goto(`${server.url}/login`);
    await page.getByLabel("Token").fill(token);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("navigation", { name: "Main" }).getByRole("link", { name: "Nodes" }).click();
    await page
      .getByRole("link", { name: /postgresql/ })
      .first()
      .click();
    await page.getByRole("link", { name: "Plan this node" }).click();
    await expect(page.getByTestId("plan-headline")).toBeVisible();
    // The node has more pages than this plan: until they are given back it is in force in part.
    const buffers = page.getByRole("textbox", { name: "shared_buffers" });
    await expect(buffers).toHaveValue(/^\d+MB$/);
    const megabytes = Number.parseInt(await buffers.inputValue(), 10);
    await buffers.fill(`${megabytes + 512}MB`);
    await expect(page.getByRole("region", { name: "The answer" })).toHaveAttribute("data-stale", "false");
    await page.getByRole("button", { name: "Keep this plan" }).click();
    const title = page.getByRole("heading", { level: 1 });
    await expect(title).toHaveText(/^Plan [0-9a-f]{4}(-[0-9a-f]{4}){3}$/);
    const digest = ((await title.textContent()) ?? "").replace("Plan ", "");
    const sheet = page.getByRole("article", { name: "The sheet to sign" });
    await expect(sheet).toContainText(digest);
    await page.getByRole("button", { name: "Propose" }).click();
    await page.getByRole("button", { name: "Approve", exact: true }).click();
    await expect(sheet).toContainText("Decided by: dba");
    const seconds = (Date.now() - begun) / 1000;
    const clicks = Number(await page.evaluate(() => sessionStorage.getItem("clicks")));
    test.info().annotations.push({ type: "journey", description: `${seconds} s, ${clicks} clicks` });
    process.stdout.write(`login to signed sheet: ${seconds.toFixed(1)} s, ${clicks} clicks\n`);
    expect(seconds).toBeLessThan(MOST_SECONDS);
    expect(clicks).toBeLessThanOrEqual(MOST_CLICKS);

    // The same digest on screen, in the document, in the files and on the node's page.
    const downloading = page.waitForEvent("download");
    await page.getByRole("link", { name: "JSON" }).click();
    const document = JSON.parse(await readFile(await (await downloading).path(), "utf8"));
    expect(digest.replaceAll("-", "")).toBe(document.digest.slice(0, 16));
    // A reload shows the same sheet to the letter: nothing in it is of the clock on the wall.
    const text = await sheet.textContent();
    await page.reload();
    await expect(sheet).toHaveText(text ?? "");
    await page.getByRole("button", { name: "Put in force" }).click();
    await expect(page.getByText(/^The node is meant to follow it|newest report says/)).toBeVisible();
    // Meant is not done: the last step is the node's own.
    const steps = page.getByRole("list", { name: "What was decided" }).getByRole("listitem");
    await expect(steps.filter({ hasText: "Put in force" })).toHaveAttribute("data-done", "true");
    await expect(steps.filter({ hasText: "Verified in force" })).toHaveAttribute("data-done", "false");
    await page.getByRole("navigation", { name: "Main" }).getByRole("link", { name: "Nodes" }).click();
    await page.goto(`${server.url}/nodes/${document.node_id}`);
    await expect(page.getByText(`The node is meant to follow plan ${digest}.`)).toBeVisible();
    await page.getByRole("link", { name: digest }).click();
    await expect(title).toHaveText(`Plan ${digest}`);
    // A synthetic node never reports: nothing happened on it, so the step can be taken back.
    await page.getByRole("button", { name: /Take back/ }).click();
    await expect(page.getByText("Approved: put it in force")).toBeVisible();
  });

  test("a proposal whose node has changed says what, and is not approved", async ({ page, watch }) => {
    watch.expectErrors(/404/);
    const { sample } = await server.recorded("two-numa-nodes");
    const report = (change: object) => {
      const at = new Date().toISOString();
      return server.sendReport("two-numa-nodes", {
        report_id: crypto.randomUUID(),
        created_at: at,
        sample: { ...sample, taken_at: at, ...change },
      });
    };
    const id = await report({});
    await page.context().addCookies([await server.sessionCookie()]);
    await page.goto(`${server.url}/planner?node=${id}`);
    await page.getByRole("textbox", { name: "shared_buffers" }).fill("8GB");
    await expect(page.getByRole("region", { name: "The answer" })).toHaveAttribute("data-stale", "false");
    await page.getByRole("button", { name: "Keep this plan" }).click();
    await page.getByRole("button", { name: "Propose" }).click();
    await expect(page.getByRole("heading", { name: "It waits for an approver." })).toBeVisible();
    // Nothing else than the time: the plan holds.
    await report({});
    await page.reload();
    await expect(page.getByRole("heading", { name: "It waits for an approver." })).toBeVisible();
    // Somebody reserved more pages by hand, and programs use them: they stay beside the plan's.
    const [first, ...rest] = sample.pools;
    const [total, ...others] = sample.global_pools;
    await report({
      pools: [{ ...first, nr_hugepages: 6024, free_hugepages: 192 }, ...rest],
      global_pools: [{ ...total, nr_hugepages: 6931 }, ...others],
    });
    await page.reload();
    // The service looks every 30 s, and then plans.
    await expect(page.getByRole("heading", { name: /has changed since this plan was computed/ })).toBeVisible(
      { timeout: 90_000 },
    );
    const changed = page.getByRole("table", { name: "What changed since" });
    await expect(changed.getByRole("row").nth(1)).toContainText(/planned pages on NUMA node/);
    await expect(changed.getByRole("row").filter({ hasText: "pages there" }).first()).toContainText("6,024");
    await expect(page.getByRole("button", { name: "Approve", exact: true })).toHaveCount(0);
    const planned = await changed.getByRole("row").nth(1).getByRole("cell").last().textContent();
    const kept = page.url();
    await page.getByRole("link", { name: "Plan it again" }).click();
    // What was tried is tried again, on the node as it is now: the plan that the table names.
    await expect(page.getByRole("textbox", { name: "shared_buffers" })).toHaveValue("8GB");
    await expect(page.getByTestId("plan-headline")).toContainText(
      planned?.replace(/ pages.*/, "") ?? "no plan",
    );
    // A node that was removed is said to be, where a plan of it is made and where one is kept.
    await server.deleteNode(id);
    await page.getByRole("textbox", { name: "shared_buffers" }).fill("9GB");
    await expect(page.getByRole("alert")).toContainText("This node was removed");
    await page.goto(kept);
    await expect(page.getByRole("heading", { name: /^Its node was removed/ })).toBeVisible();
    await expect(page.getByRole("link", { name: "db-8" })).toHaveCount(0);
  });

  test("prints the sheet alone, without the clock of the printer", async ({ page }) => {
    await page.context().addCookies([await server.sessionCookie()]);
    await page.goto(`${server.url}/planner?node=${nodeId}`);
    await page.getByRole("button", { name: "Keep this plan" }).click();
    const sheet = page.getByRole("article", { name: "The sheet to sign" });
    await expect(sheet).toBeVisible();
    await page.emulateMedia({ media: "print" });
    await expect(page.getByRole("button", { name: "Propose" })).toBeHidden();
    await expect(page.getByRole("navigation", { name: "Main" })).toBeHidden();
    await expect(sheet).toContainText("Digest (SHA-256)");
  });

  /** What a browser lays out on A4 less the sheet's own margins of 12 mm, in its pixels of 96 per inch. */
  const PAPER = { width: Math.round((186 / 25.4) * 96), height: Math.round((273 / 25.4) * 96) };
  for (const numaNodes of [1, 4, 16])
    test(`with ${numaNodes} NUMA nodes the signature is on the first page, and nothing is cut or lost`, async ({
      page,
    }) => {
      const id = await server.sendReport("two-numa-nodes", await withNumaNodes(server, numaNodes));
      const settings = { shared_buffers: "24GB", max_connections: "400" };
      const databases = Array.from({ length: Math.min(6, numaNodes + 1) }, (_, index) => ({
        ...{ name: `orders-${index}`, engine: "postgresql", version: "17", settings },
      }));
      const made = await page.request.post(`${server.url}/api/v1/plans`, {
        headers: { Authorization: `Bearer ${await server.token("admin")}` },
        data: { node_id: id, scenario: { databases } },
      });
      expect(made.status(), await made.text()).toBe(201);
      const kept = await made.json();
      await page.context().addCookies([await server.sessionCookie()]);
      await page.setViewportSize(PAPER);
      await page.emulateMedia({ media: "print" });
      await page.goto(`${server.url}/plans/${kept.id}`);
      const sheet = page.getByRole("article", { name: "The sheet to sign" });
      const signature = sheet.getByText("Signature", { exact: true });
      await expect(signature).toBeVisible();
      const bottom =
        ((await signature.boundingBox())?.y ?? 0) + ((await signature.boundingBox())?.height ?? 0);
      expect(bottom - ((await sheet.boundingBox())?.y ?? 0)).toBeLessThanOrEqual(PAPER.height);
      await expect(page.locator("html")).toHaveJSProperty("scrollWidth", PAPER.width);
      // What is signed is read: the way back is words and short commands, not the script that does it.
      await expect(sheet).toContainText("comes back.");
      await expect(sheet).not.toContainText("sha256sum");
      // Every pool of the plan has its line, in whichever column.
      const pools = kept.plan.pools.filter(
        (pool: { pages: number; present_pages: number | null }) => pool.pages > 0 || pool.present_pages !== 0,
      );
      await expect(sheet.getByRole("row").filter({ hasText: /^\d+(2M|1G)/ })).toHaveCount(pools.length);
      await server.deleteNode(id);
    });

  test("a row of a fleet plan opens its plan, and a decision about the fleet is one about its rows", async ({
    page,
  }) => {
    await page.context().addCookies([await server.sessionCookie()]);
    const authorization = { Authorization: `Bearer ${await server.token("admin")}` };
    const database = { name: "a", engine: "postgresql", version: "17", settings: { shared_buffers: "1GB" } };
    const made = await page.request.post(`${server.url}/api/v1/fleet/plan`, {
      headers: authorization,
      data: { name: "all", scenario: { databases: [database] } },
    });
    expect(made.status(), await made.text()).toBe(202);
    const { id } = await made.json();
    await page.goto(`${server.url}/fleet-plans/${id}`);
    const open = page.getByRole("button", { name: /^Open plan of/ }).first();
    await open.click();
    await expect(page.getByRole("heading", { level: 1 })).toHaveText(/^Plan [0-9a-f]{4}(-[0-9a-f]{4}){3}$/);
    await page.goBack();
    // A page that is left ends what it was deciding: each decision is waited for to its end.
    await page.getByRole("button", { name: /^Propose all/ }).click();
    await expect(page.getByText(/^\d+ proposed\.$/)).toBeVisible();
    await page.getByRole("button", { name: "Approve the proposed" }).click();
    await expect(page.getByText(/^\d+ approved\.$/)).toBeVisible();
    await page.goto(`${server.url}/plans?state=approved`);
    const rows = page.getByRole("region", { name: "Kept plans" }).getByRole("row");
    await expect(rows.nth(1)).toContainText("Approved");
    await page.goto(`${server.url}/fleet-plans/${id}`);
    await page.getByRole("button", { name: "Put the approved in force" }).click();
    await expect(page.getByText(/^\d+ put in force\.$/)).toBeVisible();
    // What is decided is not offered again.
    for (const name of ["Approve the proposed", "Put the approved in force"])
      await expect(page.getByRole("button", { name })).toHaveCount(0);
    await page.goto(`${server.url}/plans?state=in_force`);
    await expect(rows.nth(1)).toContainText(/In force: /);
  });
});
