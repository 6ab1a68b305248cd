import { expect, test } from "./fixtures";

test.describe("states", () => {
  test("nothing matches offers to clear the filters, and the address holds them", async ({
    signedIn: page,
    fleet,
  }) => {
    await page.goto(`${fleet.server.url}/nodes`);
    await page.getByLabel("Search by name").fill("no-such-node");
    await expect(page.getByText("Nothing matches")).toBeVisible();
    await expect(page).toHaveURL(/q=no-such-node/);
    await page.getByRole("button", { name: "Clear filters" }).click();
    await expect(page.getByRole("row")).toHaveCount(3);
    await expect(page).not.toHaveURL(/q=/);
  });

  test("a node that does not exist is said to be none, with a way on", async ({
    signedIn: page,
    fleet,
    watch,
  }) => {
    watch.expectErrors(/404/);
    await page.goto(`${fleet.server.url}/nodes/00000000-0000-4000-8000-000000000000`);
    await expect(page.getByRole("heading", { level: 1, name: "No such node" })).toBeVisible();
    await page.getByRole("link", { name: "All nodes" }).click();
    await expect(page.getByRole("heading", { level: 1, name: "Nodes" })).toBeVisible();
  });

  test("an administrator removes a node, told what goes and what brings it back, and a page of it says so", async ({
    signedIn: page,
    context,
    fleet,
    watch,
  }) => {
    watch.expectErrors(/404/);
    const id = await fleet.server.sendReport("guest", {
      report_id: crypto.randomUUID(),
      machine_id: "0123456789abcdef0123456789abcd0e",
      node_name: "db-gone",
    });
    const other = await context.newPage();
    await other.goto(`${fleet.server.url}/nodes/${id}`);
    await expect(other.getByRole("heading", { level: 1, name: "db-gone" })).toBeVisible();
    await page.goto(`${fleet.server.url}/nodes/${id}`);
    await page.getByRole("button", { name: "Remove", exact: true }).click();
    const dialog = page.getByRole("dialog");
    await expect(dialog).toContainText("cannot be undone");
    await expect(dialog).toContainText("its next report adds it again");
    // What is not decided changes nothing; the safe answer has the focus.
    await expect(dialog.getByRole("button", { name: "Keep it" })).toBeFocused();
    await page.keyboard.press("Escape");
    await expect(dialog).toHaveCount(0);
    await page.getByRole("button", { name: "Remove", exact: true }).click();
    await dialog.getByRole("button", { name: "Remove the node" }).click();
    await expect(page.getByRole("heading", { level: 1, name: "Nodes" })).toBeVisible();
    await expect(page.getByRole("link", { name: "db-gone" })).toHaveCount(0);
    await expect(page.getByRole("row")).toHaveCount(3);
    await expect(other.getByText("This node was deleted")).toBeVisible({ timeout: 45_000 });
    await other.close();
    await page.goto(`${fleet.server.url}/settings`);
    await expect(page.getByRole("cell", { name: /^Removed a node/ }).first()).toBeVisible();
  });

  test("only an administrator is offered to remove a node", async ({ page, fleet }) => {
    await page.goto(
      `${fleet.server.url}/login#token=${await fleet.server.newToken("planner-keeps", "planner")}`,
    );
    await expect(page.getByRole("heading", { level: 1, name: "Overview" })).toBeVisible();
    await page.goto(`${fleet.server.url}/nodes/${fleet.numaId}`);
    await expect(page.getByRole("link", { name: "Plan this node" })).toBeVisible();
    await expect(page.getByRole("button", { name: "Remove", exact: true })).toHaveCount(0);
  });

  test("an address that names nothing says so, and asks once", async ({ signedIn: page, fleet, watch }) => {
    watch.expectErrors(/status of 4\d\d/);
    const nobody = "00000000-0000-4000-8000-000000000000";
    let asked = 0;
    page.on("request", (request) => {
      if (request.url().includes("/api/v1/nodes/")) asked += 1;
    });
    const pages = {
      [`/planner?node=${nobody}`]: "No such node",
      "/planner?node=nonsense": "No such node",
      [`/planner?saved=${nobody}`]: "No such scenario",
      [`/plans/${nobody}`]: "No such plan",
      "/plans/nonsense": "No such plan",
      [`/fleet-plans/${nobody}`]: "No such fleet plan",
    };
    for (const [address, title] of Object.entries(pages)) {
      await page.goto(`${fleet.server.url}${address}`);
      await expect(page.getByRole("heading", { level: 1, name: title })).toBeVisible();
      await expect(page.getByRole("button", { name: "Try again" })).toHaveCount(0);
    }
    // Two planner pages: what the node is and what it runs, each once with one more by the page itself.
    expect(asked).toBeLessThanOrEqual(8);
  });

  test("a server that does not answer is said to be away, and found again", async ({
    signedIn: page,
    fleet,
    watch,
  }) => {
    watch.expectErrors(/ERR_FAILED|Failed to load/);
    await page.route("**/api/v1/evidence", (route) => route.abort());
    await page.goto(`${fleet.server.url}/evidence`);
    await expect(page.getByRole("alert")).toContainText("The server does not answer");
    await page.unroute("**/api/v1/evidence");
    await page.getByRole("alert").getByRole("button", { name: "Try again" }).click();
    await expect(page.getByRole("heading", { name: /What have others published/ })).toBeVisible();
  });

  for (const name of ["Evidence", "Compare", "Settings"]) {
    test(`${name}, when it cannot be loaded without a network, comes by itself when the server is back`, async ({
      overview: page,
      context,
      watch,
    }) => {
      watch.expectErrors(/ERR_INTERNET_DISCONNECTED|Failed to load|could not be loaded/);
      await context.setOffline(true);
      await page.getByRole("link", { name }).click();
      await expect(page.getByRole("alert")).toContainText("The server does not answer");
      // Away for longer: the page must stay, or nothing is left to try again from.
      await page.getByRole("button", { name: "Try again" }).click();
      await expect(page.getByRole("navigation", { name: "Main" })).toBeVisible();
      await context.setOffline(false);
      await expect(page.getByRole("heading", { level: 1, name })).toBeVisible();
    });
  }

  test("old data is said to be old while the server is away", async ({
    signedIn: page,
    fleet,
    context,
    watch,
  }) => {
    watch.expectErrors(/ERR_INTERNET_DISCONNECTED|Failed to load/);
    await page.goto(`${fleet.server.url}/nodes`);
    await expect(page.getByRole("row")).toHaveCount(3);
    const menu = page.getByRole("navigation", { name: "Main" });
    await menu.getByRole("link", { name: "Overview" }).click();
    await expect(page.getByText("Which nodes need attention?")).toBeVisible();
    await context.setOffline(true);
    // What was loaded counts as fresh for some seconds; only then is the server asked again.
    await expect(async () => {
      await menu.getByRole("link", { name: "Overview" }).click();
      await menu.getByRole("link", { name: "Nodes" }).click();
      await expect(page.getByRole("alert")).toContainText("What is shown was loaded before", {
        timeout: 2000,
      });
    }).toPass();
    await expect(page.getByRole("row")).toHaveCount(3);
    await context.setOffline(false);
    await page.getByRole("button", { name: "Try again" }).click();
    await expect(page.getByRole("alert")).toHaveCount(0);
  });

  test("a server error shows title, detail and id, and the retry works", async ({
    signedIn: page,
    fleet,
    watch,
  }) => {
    watch.expectErrors(/500/);
    const problem = {
      type: "https://hugeplan.dev/problems/internal",
      title: "Internal server error",
      status: 500,
      detail: "An unexpected error happened. Nothing was stored.",
      instance: "/api/v1/nodes",
      request_id: "req-e2e",
    };
    await page.route("**/api/v1/nodes?*", (route) =>
      route.fulfill({ status: 500, contentType: "application/problem+json", body: JSON.stringify(problem) }),
    );
    await page.goto(`${fleet.server.url}/nodes`);
    const alert = page.getByRole("alert");
    await expect(alert).toContainText(problem.title);
    await expect(alert).toContainText(problem.detail);
    await expect(alert).toContainText("req-e2e");
    await page.unroute("**/api/v1/nodes?*");
    await alert.getByRole("button", { name: "Try again" }).click();
    await expect(page.getByRole("row")).toHaveCount(3);
  });

  test("a server error in the background is said, and what was loaded stays", async ({
    signedIn: page,
    fleet,
    watch,
  }) => {
    watch.expectErrors(/503/);
    await page.goto(`${fleet.server.url}/nodes`);
    await expect(page.getByRole("row")).toHaveCount(3);
    await page.route("**/api/v1/nodes?*", (route) =>
      route.fulfill({
        status: 503,
        contentType: "application/problem+json",
        body: '{"title":"Busy","status":503}',
      }),
    );
    const menu = page.getByRole("navigation", { name: "Main" });
    // What was loaded counts as fresh for some seconds; only then is the server asked again.
    await expect(async () => {
      await menu.getByRole("link", { name: "Overview" }).click();
      await menu.getByRole("link", { name: "Nodes" }).click();
      await expect(page.getByRole("alert")).toContainText("What is shown was loaded before", {
        timeout: 2000,
      });
    }).toPass();
    await expect(page.getByRole("row")).toHaveCount(3);
    await page.unroute("**/api/v1/nodes?*");
    await page.getByRole("button", { name: "Try again" }).click();
    await expect(page.getByRole("alert")).toHaveCount(0);
  });
});

test.describe("access", () => {
  test("without a session every page leads to the login and back", async ({ page, fleet, watch }) => {
    watch.expectErrors(/401/);
    await page.goto(`${fleet.server.url}/evidence`);
    await expect(page.getByRole("heading", { name: "Sign in to hugeplan" })).toBeVisible();
    await page.getByLabel("Token").fill("hp_wrong");
    await page.getByRole("button", { name: "Sign in" }).click();
    await expect(page.getByRole("alert")).toContainText("This token is not valid here");
    await page.getByLabel("Token").fill(await fleet.server.token("admin"));
    await page.getByRole("button", { name: "Sign in" }).click();
    await expect(page.getByRole("heading", { level: 1, name: "Evidence" })).toBeVisible();
  });

  test("a session that ends leads to the login", async ({ overview: page, context, watch }) => {
    watch.expectErrors(/401/);
    await context.clearCookies();
    await page.getByRole("link", { name: "Settings" }).click();
    await expect(page.getByRole("heading", { name: "Sign in to hugeplan" })).toBeVisible();
  });

  test("an administrator makes a token, sees it once, and revokes it", async ({
    signedIn: page,
    context,
    fleet,
    watch,
  }) => {
    watch.expectErrors(/401/);
    // A session makes a lasting token only soon after its login, and this one may be old by now.
    await context.clearCookies();
    await page.goto(`${fleet.server.url}/settings`);
    await page.getByLabel("Token").fill(await fleet.server.token("admin"));
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByLabel("Name").fill("db-9");
    await page.getByRole("button", { name: "Create a token" }).click();
    await expect(page.getByRole("status").getByText(/hp_/)).toBeVisible();
    await page.reload();
    await expect(page.getByText(/hp_/)).toHaveCount(0);
    // A double click asks, and does not revoke.
    await page.getByRole("button", { name: "Revoke db-9", exact: true }).dblclick();
    await expect(page.getByRole("dialog")).toBeVisible();
    await page.getByRole("dialog").getByRole("button", { name: "Revoke the token" }).click();
    await expect(page.getByRole("button", { name: /Revoke db-9/ })).toHaveCount(0);
  });
});
