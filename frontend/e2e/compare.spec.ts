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
