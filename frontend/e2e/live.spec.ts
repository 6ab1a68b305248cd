import { expect, signIn, test } from "./fixtures";
import { HugeplanServer } from "./hugeplan-server";

test.describe("live", () => {
  test("a change appears without a reload, and the stream comes back after the server was gone", async ({
    page,
    watch,
  }) => {
    test.setTimeout(300_000);
    watch.expectErrors(/ERR_CONNECTION_REFUSED|ERR_INCOMPLETE_CHUNKED_ENCODING|Failed to load/);
    const server = await HugeplanServer.start();
    try {
      await server.sendReport("guest");
      await signIn(page, await server.loginLink());
      await expect(page.getByText("Live", { exact: true })).toBeVisible();
      await page.getByRole("link", { name: "Nodes", exact: true }).click();
      await expect(page.getByRole("row")).toHaveCount(2);
      await server.sendReport("two-numa-nodes");
      // Sooner than the clock, which asks every 30 s.
      await expect(page.getByRole("row")).toHaveCount(3, { timeout: 15_000 });
      await server.goAway();
      await expect(page.getByText(/^Not live since/)).toBeVisible();
      await server.comeBack();
      await expect(page.getByText("Live", { exact: true })).toBeVisible({ timeout: 60_000 });
    } finally {
      await server.stop();
    }
  });
});
