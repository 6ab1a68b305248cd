import { expect, test } from "./fixtures";

test.describe("savings under cache pressure", () => {
  test.beforeEach(async ({ signedIn: page, fleet }) => {
    await page.goto(`${fleet.server.url}/nodes/${fleet.guestId}?tab=pressure`);
  });

  test("are read in one sentence, and for the page size that is chosen", async ({ signedIn: page }) => {
    const card = page.getByRole("region", { name: /other lines between two accesses/ });
    await expect(card.getByRole("heading")).toHaveText(
      /^2M pages save 115 to 123\sns per access when a program reads 256 other lines between two accesses; a plain pointer chase shows only 12 to 36\sns\.$/,
    );
    await card.getByText("1G", { exact: true }).click();
    await expect(page.getByRole("figure", { name: "Saving of 1G pages by lines between" })).toBeVisible();
    await expect(card.getByText(/not complete: the time limit was reached/)).toBeVisible();
  });

  test("are drawn over lines and over time, and read with the keyboard", async ({ signedIn: page }) => {
    const card = page.getByRole("region", { name: /other lines between two accesses/ });
    const figure = card.getByRole("figure");
    await figure.getByRole("application").focus();
    await page.keyboard.press("ArrowRight");
    await expect(figure.locator("table caption")).toHaveText("64 lines in between");
    await card.getByText("Time between", { exact: true }).click();
    await expect(figure).toHaveAccessibleName("Saving of 2M pages by time between");
    await figure.getByText("Table", { exact: true }).click();
    await expect(figure.getByRole("row", { name: /^2\sµs in between/ })).toBeVisible();
  });

  test("have a table beneath, in which unknown is a word", async ({ signedIn: page }) => {
    const table = page.getByRole("region", { name: "Savings of 2M pages under cache pressure" });
    const row = table.getByRole("row", { name: /^64\sMiB/ });
    await expect(row).toContainText("115 ± 45");
    await expect(row).toContainText("unknown");
  });
});
