import { expect, test } from "./fixtures";

test("two runs of a node are chosen on its page and drawn together", async ({ signedIn: page, fleet }) => {
  // The same machine reports again: its run is stored a second time, under another report.
  await fleet.server.sendReport("guest", { report_id: crypto.randomUUID() });
  await page.goto(`${fleet.server.url}/nodes/${fleet.guestId}?tab=runs`);
  const boxes = page.getByRole("checkbox", { name: /^Compare the run started/ });
  await expect(boxes).toHaveCount(2);
  await boxes.nth(0).check();
  await boxes.nth(1).check();
  await page.getByRole("link", { name: "Compare 2 runs" }).click();
  await expect(page.getByRole("heading", { name: /^How do A .* and B .* differ\?$/ })).toBeVisible();
  await expect(page.getByRole("figure", { name: "Latency of the compared runs" })).toBeVisible();
  await expect(page.getByRole("figure", { name: /^Savings of the compared runs over/ })).toBeVisible();
  // One run twice: nothing may differ.
  await expect(page.getByRole("heading", { name: "The TLB geometries agree." })).toBeVisible();
});

test("says who wins, with ratios and the win matrix", async ({ signedIn: page, fleet }) => {
  await fleet.server.sendReport("guest", { report_id: crypto.randomUUID() });
  await page.goto(`${fleet.server.url}/compare`);
  // Before anything is chosen: which page size wins over the fleet.
  await expect(page.getByRole("region", { name: "Wins by page size" })).toContainText("All machines");
  const picker = page.getByRole("combobox", { name: "Runs" });
  await picker.click();
  const options = page.getByRole("option");
  await options.nth(0).click();
  await options.nth(1).click();
  // One run twice: nobody can win.
  await expect(page.getByRole("heading", { name: /^Nobody wins: the intervals overlap/ })).toBeVisible();
  await expect(page.getByRole("region", { name: "Times and ratios by page size" })).toContainText("×1.00");
  const matrix = page.getByRole("region", { name: "Wins by page size" });
  await expect(matrix.getByRole("row")).toHaveCount(4);
});

test("a list of runs that failed is an error, not emptiness", async ({ signedIn: page, fleet, watch }) => {
  watch.expectErrors(/500/);
  await page.route("**/api/v1/runs?*", (route) =>
    route.fulfill({
      status: 500,
      contentType: "application/problem+json",
      body: JSON.stringify({ title: "Internal server error", status: 500, detail: "It broke." }),
    }),
  );
  await page.goto(`${fleet.server.url}/compare`);
  await expect(page.getByRole("alert")).toContainText("It broke.");
  await expect(page.getByText("There is nothing to compare yet")).toHaveCount(0);
  await page.unroute("**/api/v1/runs?*");
  await page.getByRole("alert").getByRole("button", { name: "Try again" }).click();
  await expect(page.getByRole("alert")).toHaveCount(0);
});

test("a run is found by its node's name on the server", async ({ signedIn: page, fleet }) => {
  await page.goto(`${fleet.server.url}/compare`);
  const picker = page.getByRole("combobox", { name: "Runs" });
  await picker.fill("no-such-node");
  await expect(page.getByText("No run of such a node")).toBeVisible();
});
