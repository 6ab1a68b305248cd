import { expect, test } from "./fixtures";

test.describe("the planner", () => {
  test("marks a wrong input beside it, keeps the last plan, and recovers", async ({
    signedIn: page,
    fleet,
    watch,
  }) => {
    watch.expectErrors(/422/);
    await page.goto(`${fleet.server.url}/planner?node=${fleet.numaId}`);
    const answer = page.getByRole("region", { name: "The plan in one line" });
    await expect(answer).toContainText("Reserve");
    const input = page.getByLabel("shared_buffers");
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
    await expect(page.getByRole("region", { name: "The plan in one line" })).toBeVisible();
  });

  test("reads a pasted table, draws its curve, and names the line it cannot read", async ({
    signedIn: page,
    fleet,
    watch,
  }) => {
    watch.expectErrors(/422/);
    await page.goto(`${fleet.server.url}/planner?node=${fleet.numaId}`);
    await page.getByText("Connections and workload").click();
    const table = page.getByLabel("Measured throughput by pool size");
    await table.fill("5, 42428\n15, many");
    await expect(table).toHaveAttribute("aria-invalid", "true");
    await expect(page.getByText(/line 2: a throughput: a number above 0/)).toBeVisible();
    await table.fill("5, 42428\n15, 78992");
    await expect(page.getByText(/Unknown: a curve needs at least four measured pool sizes/)).toBeVisible();
    await page.getByLabel("shared_buffers").fill("8GB");
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
    await page.getByRole("button", { name: "Add a tenant" }).click();
    const tenant = page.getByRole("group", { name: "Tenant app" });
    await tenant.getByLabel("Copies").fill("20");
    await tenant.getByLabel("Request").fill("6Gi");
    await tenant.getByLabel("Limit").fill("8Gi");
    await tenant.getByLabel("NUMA node").selectOption("1");
    const card = page.getByRole("region", { name: /^NUMA node 1 / });
    await expect(card.getByRole("row", { name: /^NUMA\snode\s1/ })).toContainText("%");
    await expect(page.getByRole("region", { name: "The plan in one line" })).toContainText(
      "Above the accepted 1%",
    );
  });

  test("keeps the scenario in the address", async ({ signedIn: page, fleet }) => {
    await page.goto(`${fleet.server.url}/planner`);
    await page.getByLabel("shared_buffers").fill("16GB");
    await page.getByRole("button", { name: "Add a tenant" }).click();
    await page.getByRole("group", { name: "Tenant app" }).getByLabel("Request").fill("6Gi");
    await expect(page).toHaveURL(/16GB.*6Gi/);
    await page.reload();
    await expect(page.getByLabel("shared_buffers")).toHaveValue("16GB");
    await expect(page.getByLabel("Request")).toHaveValue("6Gi");
  });

  test("adds up: the parts of the ledger are all of the node's memory", async ({ signedIn: page, fleet }) => {
    await page.goto(`${fleet.server.url}/planner?node=${fleet.guestId}`);
    const answer = page.waitForResponse(
      (response) => response.url().endsWith("/plans/preview") && response.ok(),
    );
    await page.getByLabel("shared_buffers").fill("2GB");
    const { plan } = (await (await answer).json()) as {
      plan: { ledger: { mem_total_bytes: number; parts: { bytes: number }[] } };
    };
    expect(plan.ledger.parts.reduce((sum, part) => sum + part.bytes, 0)).toBe(plan.ledger.mem_total_bytes);
    await expect(page.getByText("stays free under the plan")).toBeVisible();
    await expect(page.getByRole("img", { name: /^Planned memory of/ })).toBeVisible();
  });

  test("saves a scenario, opens it again, and refuses a stale edit", async ({
    signedIn: page,
    fleet,
    watch,
    context,
  }) => {
    watch.expectErrors(/412/);
    await page.goto(`${fleet.server.url}/planner`);
    await page.getByLabel("shared_buffers").fill("12GB");
    await expect(page).toHaveURL(/12GB/);
    await page.getByRole("button", { name: "Save as" }).click();
    await page.getByRole("dialog").getByLabel("Name").fill("twelve");
    await page.getByRole("dialog").getByRole("button", { name: "Save" }).click();
    await expect(page.getByRole("heading", { level: 1, name: "twelve" })).toBeVisible();

    const other = await context.newPage();
    await other.goto(page.url());
    await expect(other.getByLabel("shared_buffers")).toHaveValue("12GB");
    await other.getByLabel("shared_buffers").fill("13GB");
    await other.getByRole("button", { name: "Save", exact: true }).click();
    await expect(other.getByRole("button", { name: "Save", exact: true })).toBeEnabled();
    await expect.poll(async () => savedBuffers(other)).toBe("13GB");

    await page.getByLabel("shared_buffers").fill("14GB");
    await page.getByRole("button", { name: "Save", exact: true }).click();
    await expect(page.getByText("Somebody changed it since you opened it")).toBeVisible();

    await other.getByRole("button", { name: "Delete" }).click();
    await other.getByRole("button", { name: "Delete twelve now" }).click();
    await expect(other.getByRole("heading", { level: 1, name: "Planner" })).toBeVisible();
    await expect(other.getByRole("button", { name: "Open a saved scenario" })).toHaveCount(0);
    await other.close();
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
