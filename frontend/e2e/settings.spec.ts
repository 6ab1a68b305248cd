import { expect, signIn, test } from "./fixtures";

test.describe("settings", () => {
  test("a machine is connected by a command without a token, which expires by itself", async ({
    signedIn: page,
    fleet,
  }) => {
    await page.goto(`${fleet.server.url}/settings`);
    const card = page.getByRole("region", { name: "How is a machine connected?" });
    const command = card.locator("code").first();
    await expect(command).toContainText(`--server ${fleet.server.url}`);
    await card.getByText("Kubernetes", { exact: true }).click();
    await expect(command).toContainText("--from-file=token=/dev/stdin");
    await card.getByRole("button", { name: "Enrolment token for 7 days" }).click();
    await expect(card.getByRole("status")).toContainText(/expires in 6 days|expires in 7 days/);
    await expect(command).not.toContainText(/hp_/);
    await expect(page.getByRole("row", { name: /^enrolment enrolment/ })).toBeVisible();
  });

  test("another browser is signed out from afar, after a question", async ({
    signedIn: page,
    fleet,
    browser,
  }) => {
    const other = await browser.newContext({ userAgent: "Mozilla/5.0 (Windows NT 10.0) Firefox/130.0" });
    const second = await other.newPage();
    await signIn(second, await fleet.server.loginLink());
    await page.goto(`${fleet.server.url}/settings`);
    const row = page
      .getByRole("region", { name: "Sessions" })
      .getByRole("row", { name: /Firefox 130 on Windows/ });
    await row.getByRole("button").dblclick();
    await expect(page.getByRole("dialog")).toBeVisible();
    await expect(row).toBeVisible();
    await page.getByRole("dialog").getByRole("button", { name: "Sign it out" }).click();
    await expect(row).toHaveCount(0);
    await second.goto(`${fleet.server.url}/settings`);
    await expect(second.getByRole("heading", { name: "Sign in to hugeplan" })).toBeVisible();
    await other.close();
  });

  test("the audit log is filtered on the server, and says when nothing matches", async ({
    signedIn: page,
    fleet,
  }) => {
    await fleet.server.newToken("audited", "viewer");
    await page.goto(`${fleet.server.url}/settings`);
    const card = page.getByRole("region", { name: "Who changed what?" });
    await card.getByLabel("What was done").selectOption("Created a token");
    await expect(card.getByText(/name: audited/)).toBeVisible();
    await card.getByLabel("By whom").fill("nobody");
    await expect(card.getByText("Nothing matches")).toBeVisible();
    await card.getByRole("button", { name: "Clear filters" }).click();
    await expect(card.getByText(/name: audited/)).toBeVisible();
    await expect(card.getByRole("link", { name: "CSV" })).toHaveAttribute("href", "/api/v1/audit.csv");
  });

  test("says how long it keeps what", async ({ signedIn: page, fleet }) => {
    await page.goto(`${fleet.server.url}/settings`);
    await expect(page.getByRole("row", { name: /HUGEPLAN_SAMPLE_RETENTION_DAYS/ })).toContainText("30");
    await expect(page.getByRole("row", { name: /HUGEPLAN_SILENT_NODE_RETENTION_DAYS/ })).toContainText(
      "for ever",
    );
  });

  test("a viewer sees own sessions and no administration", async ({ page, fleet }) => {
    await page.goto(`${fleet.server.url}/login#token=${await fleet.server.newToken("reader", "viewer")}`);
    await expect(page.getByRole("heading", { level: 1, name: "Overview" })).toBeVisible();
    await page.goto(`${fleet.server.url}/settings`);
    await expect(page.getByRole("heading", { name: "One browser is signed in." })).toBeVisible();
    await expect(page.getByText("Who changed what?")).toHaveCount(0);
    await expect(page.getByText("How is a machine connected?")).toHaveCount(0);
  });
});

test("the login page offers the organisation's login where the server has one", async ({
  page,
  fleet,
  watch,
}) => {
  watch.expectErrors(/401/);
  await page.goto(`${fleet.server.url}/login`);
  await expect(page.getByRole("button", { name: "Sign in" })).toBeVisible();
  await expect(page.getByRole("link", { name: "Sign in with your organisation" })).toHaveCount(0);
  await page.route("**/api/v1/login-methods", (route) =>
    route.fulfill({ json: { oidc_url: "/api/v1/oidc/login" } }),
  );
  await page.reload();
  await expect(page.getByRole("link", { name: "Sign in with your organisation" })).toHaveAttribute(
    "href",
    "/api/v1/oidc/login",
  );
});
