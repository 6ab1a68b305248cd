import { toFragment } from "../src/pages/planner/live/address";
import { expect, test } from "./fixtures";

/** A form with this memory, as a link holds it. */
const draftOf = (memory: string) => toFragment({ form: { node: { memory } } });

test("a draft that was cut on its way is said once", async ({ signedIn: page, fleet }) => {
  await page.goto(`${fleet.server.url}/planner#${draftOf("96GiB").slice(0, 20)}`);
  const said = page.getByText("The draft in this link cannot be read");
  await expect(said).toBeVisible();
  await page.getByRole("button", { name: "Close" }).click();
  await expect(said).toHaveCount(0);
  await page.goto(`${fleet.server.url}/planner#${draftOf("96GiB")}`);
  await expect(page.getByRole("textbox", { name: "Memory" }).first()).toHaveValue("96GiB");
  await expect(said).toHaveCount(0);
});

test("a login at another site comes back to the address with its draft", async ({ page, fleet, watch }) => {
  watch.expectErrors(/401/);
  // The provider is another site: here a page of this server that signs the browser in and leads to the start page.
  await page.route("**/api/v1/login-methods", (route) =>
    route.fulfill({ json: { token: true, oidc_url: "/api/v1/oidc/login" } }),
  );
  await page.route("**/api/v1/oidc/login", async (route) => {
    await page.context().addCookies([await fleet.server.sessionCookie()]);
    await route.fulfill({ status: 303, headers: { Location: "/" } });
  });
  await page.goto(`${fleet.server.url}/planner#${draftOf("96GiB")}`);
  await page.getByRole("link", { name: "Sign in with your organisation" }).click();
  await expect(page).toHaveURL(/\/planner/);
  await expect(page.getByRole("textbox", { name: "Memory" }).first()).toHaveValue("96GiB");
  // Once: the start page is the start page again.
  await page.goto(`${fleet.server.url}/`);
  await expect(page.getByRole("heading", { level: 1, name: "Overview" })).toBeVisible();
});
