import { toFragment } from "../src/pages/planner/live/address";
import { expectInAddress } from "./draft";
import { expect, test } from "./fixtures";
import { withNumaNodes } from "./numa-nodes";
import { measureWhatIf, quantile } from "./what-if";

/** A plan is to be painted within this time of the key, in 95 of 100 keys. The printed line says what was measured. */
const WHAT_IF_MS = 100;
/** A machine whose median yardstick is slower than this does something else as well. Measured in quiet: 22. */
const QUIET_YARDSTICK_MS = 25;
/** How many times an empty preview a what-if may take, however busy the machine is. Measured beside seven engineers: 2.4, 2.2. */
const MOST_EMPTY_PREVIEWS = { p50: 4, p95: 4 };

test.describe("the planner", () => {
  test("marks a wrong input beside it, keeps the last plan, and recovers", async ({
    signedIn: page,
    fleet,
    watch,
  }) => {
    watch.expectErrors(/422/);
    await page.goto(`${fleet.server.url}/planner?node=${fleet.numaId}`);
    const answer = page.getByRole("region", { name: "The answer" });
    await expect(answer).toContainText("Reserve");
    const input = page.getByRole("textbox", { name: "shared_buffers" });
    await input.fill("8 bananas");
    await expect(input).toHaveAttribute("aria-invalid", "true");
    await expect(page.getByRole("alert")).toContainText("one input is not valid");
    await expect(answer).toBeVisible();
    await input.fill("4GB");
    await expect(input).not.toHaveAttribute("aria-invalid", "true");
    await expect(page.getByRole("alert")).toHaveCount(0);
  });

  test("refuses a node without memory", async ({ signedIn: page, fleet, watch }) => {
    watch.expectErrors(/422/);
    await page.goto(`${fleet.server.url}/planner`);
    await page.getByRole("textbox", { name: "Memory" }).fill("0");
    await expect(page.getByRole("textbox", { name: "Memory" })).toHaveAttribute("aria-invalid", "true");
    await page.getByRole("textbox", { name: "Memory" }).fill("64GiB");
    await expect(page.getByRole("region", { name: "The answer" })).toBeVisible();
  });

  test("reads a pasted table, draws its curve, and names the line it cannot read", async ({
    signedIn: page,
    fleet,
    watch,
  }) => {
    watch.expectErrors(/422/);
    await page.goto(`${fleet.server.url}/planner?node=${fleet.numaId}`);
    await page.getByText("Connections, workload and pool range").click();
    const table = page.getByLabel("Measured throughput by pool size");
    await table.fill("5, 42428\n15, many");
    await expect(table).toHaveAttribute("aria-invalid", "true");
    await expect(page.getByText(/line 2: a throughput: a number above 0/)).toBeVisible();
    await table.fill("5, 42428\n15, 78992");
    await expect(page.getByText(/Unknown: a curve needs at least four measured pool sizes/)).toBeVisible();
    await page.getByRole("textbox", { name: "shared_buffers" }).fill("8GB");
    await table.fill("5, 42428\n15, 78992\n25, 108078\n45, 127829\n75, 133185");
    await expect(
      page.getByRole("heading", { name: /^With 8\sGiB of buffer pool main reaches/ }),
    ).toBeVisible();
    const figure = page.getByRole("figure", { name: "Throughput of main by buffer pool size" });
    await figure.getByText("Table", { exact: true }).click();
    await expect(figure.getByRole("row")).toHaveCount(6);
  });

  test("shows the risk of each NUMA node that something is bound to", async ({ signedIn: page, fleet }) => {
    await page.goto(`${fleet.server.url}/planner?node=${fleet.numaId}`);
    await page.getByRole("button", { name: "Add a workload" }).click();
    const tenant = page.getByRole("group", { name: "Workload app" });
    await tenant.getByLabel("Replicas").fill("20");
    await tenant.getByLabel("Request").fill("6Gi");
    await tenant.getByLabel("Limit").fill("8Gi");
    await tenant.getByLabel("NUMA node").selectOption("1");
    const card = page.getByRole("region", { name: /^NUMA node 1 / });
    const title = card.getByRole("button", { name: /^NUMA node 1 / });
    if ((await title.getAttribute("aria-expanded")) === "false") await title.click();
    await expect(card.getByRole("row", { name: /^NUMA\snode\s1/ })).toContainText("%");
    await expect(page.getByRole("region", { name: "The answer" })).toContainText("short on NUMA node 1");
  });

  test("keeps the scenario in the address", async ({ signedIn: page, fleet }) => {
    await page.goto(`${fleet.server.url}/planner`);
    await page.getByRole("textbox", { name: "shared_buffers" }).fill("16GB");
    await page.getByRole("button", { name: "Add a workload" }).click();
    await page.getByRole("group", { name: "Workload app" }).getByLabel("Request").fill("6Gi");
    await expectInAddress(page, "16GB");
    await expectInAddress(page, "6Gi");
    await page.reload();
    await expect(page.getByRole("textbox", { name: "shared_buffers" })).toHaveValue("16GB");
    await expect(page.getByLabel("Request")).toHaveValue("6Gi");
  });

  test("adds up: the parts of the ledger are all of the node's memory", async ({ signedIn: page, fleet }) => {
    await page.goto(`${fleet.server.url}/planner?node=${fleet.guestId}`);
    // Answers are read on their way: a body that the page gave up for a newer one cannot be read afterwards.
    const ledgers: { mem_total_bytes: number; parts: { bytes: number }[] }[] = [];
    await page.route("**/api/v1/plans/preview", async (route) => {
      const response = await route.fetch();
      if (route.request().postData()?.includes("2GB")) ledgers.push((await response.json()).plan.ledger);
      await route.fulfill({ response });
    });
    await page.getByRole("textbox", { name: "shared_buffers" }).fill("2GB");
    await expect.poll(() => ledgers.length).toBeGreaterThan(0);
    for (const { parts, mem_total_bytes } of ledgers)
      expect(parts.reduce((sum, part) => sum + part.bytes, 0)).toBe(mem_total_bytes);
    await expect(page.getByText("stays available to programs")).toBeVisible();
    await expect(page.getByRole("group", { name: /^Planned memory of/ })).toBeVisible();
    // The files of the same plan may still be under way.
    await page.unrouteAll({ behavior: "ignoreErrors" });
  });

  test("saves a scenario, opens it again, and refuses a stale edit", async ({
    signedIn: page,
    fleet,
    watch,
    context,
  }) => {
    watch.expectErrors(/412/);
    await page.goto(`${fleet.server.url}/planner`);
    await page.getByRole("textbox", { name: "shared_buffers" }).fill("12GB");
    await expectInAddress(page, "12GB");
    await page.getByRole("button", { name: "Save", exact: true }).click();
    await page.getByRole("dialog").getByLabel("Name").fill("twelve");
    await page.getByRole("dialog").getByRole("button", { name: "Save" }).click();
    await expect(page.getByRole("heading", { level: 1, name: "twelve" })).toBeVisible();
    await expect(page.getByText("Saved, version 1.")).toBeVisible();

    const other = await context.newPage();
    await other.goto(page.url());
    await expect(other.getByRole("textbox", { name: "shared_buffers" })).toHaveValue("12GB");
    await other.getByRole("textbox", { name: "shared_buffers" }).fill("13GB");
    await other.getByRole("button", { name: "Save", exact: true }).click();
    await expect(other.getByText("Saved, version 2.")).toBeVisible();
    await expect.poll(async () => savedBuffers(other)).toBe("13GB");

    // The edit made here is not lost: not by the refusal, and not by a reload.
    await page.getByRole("textbox", { name: "shared_buffers" }).fill("14GB");
    await page.getByRole("button", { name: "Save", exact: true }).click();
    await expect(page.getByText(/somebody changed this scenario since you opened it/)).toBeVisible();
    await expectInAddress(page, "14GB");
    await page.reload();
    await expect(page.getByRole("textbox", { name: "shared_buffers" })).toHaveValue("14GB");
    await expect(page.getByText("Unsaved changes, kept in the address")).toBeVisible();

    await other.getByRole("button", { name: "Delete" }).click();
    await other.getByRole("dialog").getByRole("button", { name: "Delete twelve" }).click();
    await expect(other.getByRole("heading", { level: 1, name: "Planner" })).toBeVisible();
    await other.close();
  });

  test("says that a save failed, and keeps the edit", async ({ signedIn: page, fleet, watch }) => {
    watch.expectErrors(/500/);
    await page.goto(`${fleet.server.url}/planner`);
    await page.getByRole("textbox", { name: "shared_buffers" }).fill("5GB");
    await page.getByRole("button", { name: "Save", exact: true }).click();
    await page.route("**/api/v1/scenarios", (route) =>
      route.request().method() === "POST"
        ? route.fulfill({
            status: 500,
            contentType: "application/problem+json",
            body: JSON.stringify({ title: "Internal server error", status: 500, request_id: "req-e2e" }),
          })
        : route.continue(),
    );
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Name").fill("five");
    await dialog.getByRole("button", { name: "Save" }).click();
    await expect(dialog.getByRole("alert")).toContainText("Internal server error");
    await page.keyboard.press("Escape");
    await expect(page.getByRole("textbox", { name: "shared_buffers" })).toHaveValue("5GB");
  });

  test("takes an edit back and forth, and shares it unsaved in a second browser", async ({
    signedIn: page,
    fleet,
    browser,
  }) => {
    await page.goto(`${fleet.server.url}/planner`);
    await page.getByRole("textbox", { name: "shared_buffers" }).fill("6GB");
    await expectInAddress(page, "6GB");
    await page.getByRole("button", { name: "Undo" }).click();
    await expect(page.getByRole("textbox", { name: "shared_buffers" })).toHaveValue("");
    await page.getByRole("button", { name: "Redo" }).click();
    await expect(page.getByRole("textbox", { name: "shared_buffers" })).toHaveValue("6GB");
    await expectInAddress(page, "6GB");
    const second = await browser.newContext();
    const reader = await second.newPage();
    await second.addCookies([await fleet.server.sessionCookie()]);
    await reader.goto(page.url());
    await expect(reader.getByRole("textbox", { name: "shared_buffers" })).toHaveValue("6GB");
    await second.close();
  });

  test("keeps an edit that is left right after the key, by a link and back", async ({
    signedIn: page,
    fleet,
  }) => {
    await page.goto(`${fleet.server.url}/planner`);
    await page.getByRole("textbox", { name: "shared_buffers" }).fill("9GB");
    await page.getByRole("link", { name: "Settings" }).click();
    await expect(page.getByRole("heading", { level: 1, name: "Settings" })).toBeVisible();
    await page.goBack();
    await expect(page.getByRole("textbox", { name: "shared_buffers" })).toHaveValue("9GB");
  });

  test("saves a scenario with all that the form has no input for", async ({ signedIn: page, fleet }) => {
    const id = await fleet.server.saveScenario("whole", "8GB", {
      stateful_set: "shop/orders-db",
      container: "postgres",
      weight: 2,
    });
    await page.goto(`${fleet.server.url}/planner?saved=${id}`);
    await expect(page.getByText("Saved, version 1.")).toBeVisible();
    await expect(page.getByText(/Saving from here would drop/)).toHaveCount(0);
    await page
      .getByRole("group", { name: "Database whole" })
      .getByLabel("Name", { exact: true })
      .fill("renamed");
    await page.getByRole("button", { name: "Save", exact: true }).click();
    await expect(page.getByText("Saved, version 2.")).toBeVisible();
    const database = await page.evaluate(async (scenarioId) => {
      const saved = await (await fetch(`/api/v1/scenarios/${scenarioId}`)).json();
      return saved.scenario.databases[0];
    }, id);
    expect(database).toMatchObject({
      name: "renamed",
      stateful_set: "shop/orders-db",
      container: "postgres",
      weight: 2,
    });
  });

  test("announces the answer in one line, not the whole page", async ({ signedIn: page, fleet }) => {
    await page.goto(`${fleet.server.url}/planner?node=${fleet.numaId}`);
    const announced = page.getByRole("status").filter({ hasText: "The plan is up to date" });
    await expect(announced).toHaveText(/Reserve .* pages/);
    const live = page.locator("[aria-live], [role=status], [role=alert], [role=log]");
    await expect(live.filter({ has: page.locator("table, figure, section, h2") })).toHaveCount(0);
  });

  test("is edited by an edit alone, and keeps its node in the address without one", async ({
    signedIn: page,
    fleet,
  }) => {
    await page.goto(`${fleet.server.url}/planner?node=${fleet.numaId}`);
    await expect(page.getByTestId("plan-headline")).toBeVisible();
    const edited = page.getByText("Edited; the address keeps it.");
    await expect(edited).toBeHidden();
    await page.getByRole("textbox", { name: "Slack per pool" }).fill("3%");
    await expect(edited).toBeVisible();
    await expect.poll(() => new URL(page.url()).hash).toContain("draft=");
    await page.getByRole("button", { name: "Undo" }).click();
    await expect(edited).toBeHidden();
    await expect.poll(() => new URL(page.url()).hash).toBe("");
    expect(new URL(page.url()).searchParams.get("node")).toBe(fleet.numaId);
    await page.reload();
    await expect(page.getByTestId("plan-headline")).toBeVisible();
    expect(new URL(page.url()).searchParams.get("node")).toBe(fleet.numaId);
  });

  test("never shows the plan of one node beside another", async ({ signedIn: page, fleet }) => {
    await page.goto(`${fleet.server.url}/planner?node=${fleet.guestId}`);
    const planned = page.getByRole("group", { name: /^Planned memory of/ });
    await expect(planned.first()).toBeVisible();
    await page.route("**/api/v1/plans/preview", async (route) => {
      await new Promise((answer) => setTimeout(answer, 1500));
      await route.continue();
    });
    await page.getByRole("combobox", { name: "Node" }).click();
    await page.getByRole("listbox").getByRole("option").nth(1).click();
    await expect(planned).toHaveCount(0);
    await expect(planned.first()).toBeVisible();
    await page.unrouteAll({ behavior: "ignoreErrors" });
  });

  test("follows a slider: 100 steps, each to its painted number", async ({ signedIn: page, fleet }) => {
    await page.goto(`${fleet.server.url}/planner?node=${fleet.numaId}`);
    const answersMs: number[] = [];
    const yardsticksMs: number[] = [];
    // Another slack each time, so that no plan was asked for before.
    for (const slack of ["1%", "1.5%", "2%", "2.5%"]) {
      await page.getByRole("textbox", { name: "Slack per pool" }).fill(slack);
      // From here on each step of the slider changes the number of pages.
      await page.getByRole("textbox", { name: "shared_buffers" }).fill("4GB");
      await expect(page.getByTestId("plan-headline")).toHaveText(/Reserve [23],\d\d\d pages of 2M/);
      await expect(page.locator("[aria-busy=true]")).toHaveCount(0);
      const block = await measureWhatIf(page, "Try another shared_buffers", 25);
      answersMs.push(...block.answersMs);
      yardsticksMs.push(...block.yardsticksMs);
    }
    const [p50, p95] = [quantile(answersMs, 0.5), quantile(answersMs, 0.95)];
    const [leastP50, leastP95] = [quantile(yardsticksMs, 0.5), quantile(yardsticksMs, 0.95)];
    console.log(
      `what-if: p50 ${p50.toFixed(0)} ms, p95 ${p95.toFixed(0)} ms of ${WHAT_IF_MS} ms; ` +
        `empty preview: p50 ${leastP50.toFixed(0)} ms, p95 ${leastP95.toFixed(0)} ms`,
    );
    // Beside other work everything takes longer, and a key that asks for a plan of nothing as well: the ratio counts always.
    if (leastP50 <= QUIET_YARDSTICK_MS) expect(p95).toBeLessThan(WHAT_IF_MS);
    expect(p50 / leastP50).toBeLessThan(MOST_EMPTY_PREVIEWS.p50);
    expect(p95 / leastP95).toBeLessThan(MOST_EMPTY_PREVIEWS.p95);
  });

  test("is on paper the answer alone, and says that it is not kept", async ({ signedIn: page, fleet }) => {
    await page.goto(`${fleet.server.url}/planner?node=${fleet.numaId}`);
    await expect(page.getByRole("region", { name: "The answer" })).toBeVisible();
    await page.emulateMedia({ media: "print" });
    await expect(page.getByText("A plan that is not kept.")).toBeVisible();
    await expect(page.getByTestId("plan-headline")).toBeVisible();
    await expect(page.getByRole("textbox", { name: "shared_buffers" })).toBeHidden();
    // Neither the toolbar above nor a control in the answer.
    for (const name of ["Open", "Compare", "Share", "Save", "Keep this plan"])
      await expect(page.getByRole("button", { name, exact: true })).toBeHidden();
    await expect(page.getByText("Signature", { exact: true })).toHaveCount(0);
  });

  for (const size of [
    { width: 1360, height: 900 },
    { width: 1440, height: 900 },
  ])
    test(`shows decision, gain, memory and the next step at once at ${size.width} x ${size.height}`, async ({
      signedIn: page,
      fleet,
    }) => {
      await page.setViewportSize(size);
      await page.goto(`${fleet.server.url}/planner?node=${fleet.numaId}`);
      await expect(page.getByTestId("plan-headline")).toBeInViewport({ ratio: 1 });
      await expect(page.getByTestId("verdict")).toBeInViewport({ ratio: 1 });
      await expect(page.getByText("Buys", { exact: true })).toBeInViewport({ ratio: 1 });
      await expect(page.getByRole("button", { name: "Keep this plan" })).toBeInViewport({ ratio: 1 });
      await expect(page.getByRole("group", { name: /^Planned memory of/ }).first()).toBeInViewport({
        ratio: 1,
      });
      expect(await page.evaluate(() => document.body.scrollWidth - window.innerWidth)).toBeLessThanOrEqual(0);
    });

  test("keeps 100 databases through reload, back, a second tab and the navigation", async ({
    signedIn: page,
    fleet,
    context,
  }) => {
    const databases = Array.from({ length: 100 }, (_, index) => ({
      name: `db-${index}`,
      engine: "postgresql",
      settings: { shared_buffers: "64MB" },
    }));
    const fragment = toFragment({ form: { node: { memory: "512GiB" }, databases, tenants: [] } });
    await page.goto(`${fleet.server.url}/planner#${fragment}`);
    const last = (of: typeof page) => of.getByRole("group", { name: "Database db-99" });
    await expect(page.getByTestId("plan-headline")).toContainText("Reserve", { timeout: 60_000 });
    const buffers = last(page).getByRole("textbox", { name: "shared_buffers" });
    await buffers.fill("96MB");
    await expectInAddress(page, "96MB");
    // A link to the page itself, while it is edited, drops nothing.
    await page.getByRole("navigation", { name: "Main" }).getByRole("link", { name: "Planner" }).click();
    await expect(buffers).toHaveValue("96MB");
    await expectInAddress(page, "96MB");
    await page.reload();
    await expect(buffers).toHaveValue("96MB");
    const second = await context.newPage();
    await second.goto(page.url());
    await expect(last(second).getByRole("textbox", { name: "shared_buffers" })).toHaveValue("96MB");
    await last(second).getByRole("textbox", { name: "shared_buffers" }).fill("128MB");
    await expectInAddress(second, "128MB");
    await expect(buffers).toHaveValue("96MB");
    await second.close();
    await page.getByRole("link", { name: "Settings" }).click();
    await expect(page.getByRole("heading", { level: 1, name: "Settings" })).toBeVisible();
    await page.goBack();
    await expect(buffers).toHaveValue("96MB");
  });

  for (const times of [2, 8])
    test(`prints the memory of ${2 * times} NUMA nodes on the sheet, uncut`, async ({
      signedIn: page,
      fleet,
    }) => {
      const id = await fleet.server.sendReport(
        "two-numa-nodes",
        await withNumaNodes(fleet.server, 2 * times),
      );
      try {
        await page.goto(`${fleet.server.url}/planner?node=${id}`);
        await page.getByRole("button", { name: "Keep this plan" }).click();
        const sheet = page.getByRole("article", { name: "The sheet to sign" });
        await expect(sheet).toBeVisible();
        await page.emulateMedia({ media: "print" });
        await page.setViewportSize({ width: 703, height: 1032 });
        const picture = sheet.locator("section", { hasText: "Memory under the plan" }).first();
        // Of each NUMA node what is planned and what is now.
        await expect(picture.locator("[role=group]")).toHaveCount(2 * 2 * times);
        const cut = await picture.evaluate((section) => {
          const paper = section.getBoundingClientRect();
          return [...section.querySelectorAll("[role=group], li")].filter((drawn) => {
            const { bottom, right, height } = drawn.getBoundingClientRect();
            return height < 8 || bottom > paper.bottom + 1 || right > paper.right + 1;
          }).length;
        });
        expect(cut).toBe(0);
        await expect(sheet.getByText("Signature", { exact: true })).toBeVisible();
      } finally {
        await fleet.server.deleteNode(id);
      }
    });

  test("takes pods from kubectl as workloads, read by the service", async ({
    signedIn: page,
    fleet,
    watch,
  }) => {
    watch.expectErrors(/4(00|22)/);
    await page.goto(`${fleet.server.url}/planner`);
    await page.getByRole("button", { name: "Paste pods" }).click();
    const dialog = page.getByRole("dialog");
    const pod = (name: string, containers: unknown[], phase = "Running") => ({
      apiVersion: "v1",
      kind: "Pod",
      metadata: {
        name,
        namespace: "shop",
        ownerReferences: [
          { apiVersion: "apps/v1", kind: "ReplicaSet", name: "api-7d9f4b6c5", controller: true, uid: "u" },
        ],
      },
      spec: { nodeName: "n1", containers },
      status: { phase },
    });
    const api = { name: "api", resources: { requests: { memory: "1Gi" }, limits: { memory: "2Gi" } } };
    await dialog.getByLabel("Pods as JSON").fill("NAME READY");
    await expect(dialog.getByRole("alert")).toBeVisible();
    const items = [
      pod("api-a", [api]),
      pod("api-b", [api]),
      // A sidecar that names no memory: the pod stays.
      pod("mesh", [api, { name: "proxy" }]),
      pod("done", [api], "Succeeded"),
    ];
    await dialog.getByLabel("Pods as JSON").fill(JSON.stringify({ apiVersion: "v1", kind: "List", items }));
    await expect(dialog.getByTestId("pods-found")).toHaveText("3 pods taken. Left out: 1 ended.");
    await dialog.getByRole("button", { name: "Add 2 workloads" }).click();
    const tenants = page.getByRole("group", { name: "Workload shop/api-7d9f4b6c5" });
    await expect(tenants).toHaveCount(2);
    await expect(tenants.first().getByLabel("Replicas")).toHaveValue("2");
  });
});

/** What the server has stored of the scenario that is open. */
async function savedBuffers(page: import("@playwright/test").Page): Promise<unknown> {
  return page.evaluate(async () => {
    const id = new URL(window.location.href).searchParams.get("saved")?.replaceAll('"', "");
    const answer = await fetch(`/api/v1/scenarios/${id}`);
    const saved = await answer.json();
    return saved.scenario?.databases?.[0]?.settings?.shared_buffers;
  });
}
