import { expect, type Fleet, test } from "./fixtures";

const PAGES: { name: string; path: (fleet: Fleet) => string; arrived: RegExp }[] = [
  { name: "overview", path: () => "/", arrived: /Which nodes need attention/ },
  { name: "nodes", path: () => "/nodes", arrived: /Which node do you want to plan/ },
  { name: "node", path: ({ guestId }) => `/nodes/${guestId}`, arrived: /dependent read/ },
  {
    name: "node under pressure",
    path: ({ guestId }) => `/nodes/${guestId}?tab=pressure`,
    arrived: /other lines between two accesses/,
  },
  {
    name: "node's rows",
    path: ({ guestId }) => `/nodes/${guestId}?tab=rows`,
    arrived: /rows per second against/,
  },
  { name: "node's processes", path: ({ numaId }) => `/nodes/${numaId}?tab=processes`, arrived: /In pools/ },
  {
    name: "node's report",
    path: ({ guestId }) => `/nodes/${guestId}?tab=report`,
    arrived: /newest report has/,
  },
  {
    name: "planner",
    path: ({ numaId }) => `/planner?node=${numaId}`,
    arrived: /What does .* need/,
  },
  { name: "planner without a node", path: () => "/planner", arrived: /What does .* need/ },
  { name: "groups of like nodes", path: () => "/nodes?view=groups", arrived: /such as/ },
  { name: "fleet plans", path: () => "/fleet-plans", arrived: /Which plans are there/ },
  {
    name: "planner, does not fit",
    path: ({ numaId }) =>
      `/planner?node=${numaId}&form=${encodeURIComponent(
        JSON.stringify({
          databases: [{ name: "main", engine: "postgresql", settings: { shared_buffers: "900GB" } }],
        }),
      )}`,
    arrived: /Does not fit/,
  },
  { name: "evidence", path: () => "/evidence", arrived: /What have others published/ },
  { name: "settings", path: () => "/settings", arrived: /Who may connect/ },
];

test.describe("on a telephone no page is wider than its screen", () => {
  test.use({ viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true });
  for (const { name, path, arrived } of PAGES) {
    test(name, async ({ signedIn: page, fleet }) => {
      await page.goto(fleet.server.url + path(fleet));
      await expect(page.getByText(arrived).first()).toBeVisible();
      await expect(page.getByRole("status", { name: "Loading" })).toHaveCount(0);
      await expect(page.locator("html")).toHaveJSProperty("scrollWidth", 390);
    });
  }

  test("what is long is folded, and its line says what is in it", async ({ signedIn: page, fleet }) => {
    const height = () => page.evaluate(() => document.documentElement.scrollHeight);
    await page.goto(`${fleet.server.url}/evidence`);
    await expect(page.getByText(/What have others published/)).toBeVisible();
    await expect(page.getByRole("button", { name: /\d+ of \d+ inside, / }).first()).toBeVisible();
    expect(await height()).toBeLessThan(8_000);
    await page.goto(await fleet.server.planFleet());
    const nodes = page.getByRole("button", { name: /^Which nodes need attention\? \d+ of \d+\./ });
    await expect(nodes).toHaveAttribute("aria-expanded", "false");
    expect(await height()).toBeLessThan(4_000);
  });

  test("a node whose processor has a long name", async ({ signedIn: page, fleet }) => {
    const cpu = { brand: "Genuine Processor with a Brand as Long as its Maker Likes It @ 3.20GHz" };
    const { inventory } = await fleet.server.recorded("guest");
    const id = await fleet.server.sendReport("guest", {
      report_id: crypto.randomUUID(),
      machine_id: "0123456789abcdef0123456789abcb0a",
      node_name: "db-brand",
      inventory: { ...inventory, cpu: { ...inventory.cpu, ...cpu } },
    });
    try {
      await page.goto(`${fleet.server.url}/nodes/${id}`);
      await expect(page.getByText(/Maker Likes/).first()).toBeVisible();
      await expect(page.locator("html")).toHaveJSProperty("scrollWidth", 390);
      await page.goto(fleet.server.url);
      const machines = page.getByRole("region", { name: "Machine types" });
      await expect(machines.getByText(/Maker Likes/)).toBeVisible();
      expect(
        await machines.evaluate((element) =>
          [...element.querySelectorAll("td")]
            .filter((cell) => cell.scrollWidth > cell.clientWidth + 1)
            .map((cell) => cell.textContent),
        ),
      ).toEqual([]);
    } finally {
      await fleet.server.deleteNode(id);
    }
  });

  for (const { name, path, table } of [
    { name: "the win matrix", path: () => "/compare", table: "Wins by page size" },
    { name: "the node's pools", path: ({ numaId }: Fleet) => `/nodes/${numaId}?tab=memory`, table: "Pools" },
    { name: "the tokens", path: () => "/settings", table: "Tokens" },
    { name: "the sessions", path: () => "/settings", table: "Sessions" },
    { name: "a fleet plan's nodes", path: () => "/", table: "Nodes of the plan" },
    { name: "the kept plans", path: () => "/plans", table: "Kept plans" },
  ])
    test(`every column of ${name} is in view`, async ({ signedIn: page, fleet }) => {
      // The win matrix is there where two runs can be compared, and a plan where one was kept.
      await fleet.server.sendReport("guest", { report_id: crypto.randomUUID() });
      if (table === "Kept plans") await fleet.server.keepPlan(fleet.numaId);
      await page.goto(fleet.server.url + path(fleet));
      if (table === "Nodes of the plan") {
        await page.goto(await fleet.server.planFleet());
        // Twenty stacked rows are folded behind their number.
        await page.getByRole("button", { name: /^Which nodes need attention/ }).click();
      }
      const box = page.getByRole("region", { name: table });
      await expect(box.getByRole("cell").first()).toBeVisible();
      await expect(box.getByRole("columnheader").first()).toBeAttached();
      if (table === "Kept plans") {
        // A proposed plan has two buttons side by side.
        await box.getByRole("button", { name: "Propose" }).first().click();
        await expect(box.getByRole("button", { name: "Take back" }).first()).toBeVisible();
        // What turns while a button works is laid out past its edge, and is no text.
        await expect(box.locator("[data-loading]")).toHaveCount(0);
      }
      if (table === "Kept plans") {
        // The longest of the states stands beside the time.
        await box.getByRole("button", { name: "Approve" }).first().click();
        await box.getByRole("button", { name: "Put in force" }).first().click();
        await expect(box.getByText(/^In force: /).first()).toBeVisible();
        await expect(box.locator("[data-loading]")).toHaveCount(0);
      }
      const { needs, has, cut } = await box.evaluate((element) => ({
        needs: element.scrollWidth,
        has: element.clientWidth,
        // Neither a cell's own text nor that of a button in it may run out.
        cut: [...element.querySelectorAll<HTMLElement>("td, td button, td button *")]
          .filter((part) => part.clientWidth > 0 && part.scrollWidth > part.clientWidth + 1)
          .map((part) => part.textContent),
      }));
      if (table === "Kept plans")
        await box
          .getByRole("button", { name: /^Take back/ })
          .first()
          .click();
      expect(needs).toBeLessThanOrEqual(has);
      expect(cut).toEqual([]);
    });

  for (const { name, path, table, terms } of [
    { name: "the win matrix", path: () => "/compare", table: "Wins by page size", terms: ["Ties", "THP"] },
    {
      name: "the node's pools",
      path: ({ numaId }: Fleet) => `/nodes/${numaId}?tab=memory`,
      table: "Pools",
      terms: ["NUMA node", "Requested at boot (all NUMA nodes)", "Surplus (pages)"],
    },
  ])
    test(`a touch explains the columns of ${name}`, async ({ signedIn: page, fleet }) => {
      await fleet.server.sendReport("guest", { report_id: crypto.randomUUID() });
      await page.goto(fleet.server.url + path(fleet));
      const box = page.getByRole("region", { name: table });
      for (const term of terms) {
        const button = box.getByRole("button", { name: term, exact: true });
        await expect(button).toHaveCount(1);
        await button.scrollIntoViewIfNeeded();
        await expect(button).toBeInViewport({ ratio: 1 });
        expect((await button.boundingBox())?.height).toBeGreaterThanOrEqual(24);
        await button.tap({ timeout: 5_000 });
        const explanation = page.getByRole("dialog");
        await expect(explanation).toBeInViewport({ ratio: 1 });
        await page.keyboard.press("Escape");
        await expect(explanation).toHaveCount(0);
      }
    });

  test("a node whose name has 200 characters", async ({ signedIn: page, fleet }) => {
    const id = await fleet.server.sendReport("guest", {
      report_id: "5b0e4a52-7f0c-4f0e-8a53-00000000c0de",
      machine_id: "0123456789abcdef0123456789abc0de",
      node_name: `db-${"long-".repeat(39)}ab`,
    });
    try {
      for (const path of ["/", "/nodes", `/nodes/${id}`, `/planner?node=${id}`]) {
        await page.goto(fleet.server.url + path);
        await expect(page.getByRole("heading", { level: 1 })).toBeVisible();
        if (path !== "/") await expect(page.getByText(/long-long/).first()).toBeAttached();
        await expect(page.getByRole("status", { name: "Loading" })).toHaveCount(0);
        await expect(page.locator("html")).toHaveJSProperty("scrollWidth", 390);
      }
    } finally {
      await fleet.server.deleteNode(id);
    }
  });
});

/** A size that is cut is read as another one, so each of the memory map's is whole or not there. */
test.describe("no size in the memory map is cut", () => {
  for (const width of [390, 700, 1360])
    test(`at ${width} px`, async ({ signedIn: page, fleet }) => {
      await page.setViewportSize({ width, height: 900 });
      for (const path of ["/", `/nodes/${fleet.numaId}`, `/planner?node=${fleet.numaId}`]) {
        await page.goto(fleet.server.url + path);
        const bar = page.getByRole("group", { name: /emory of / }).first();
        await expect(bar).toBeVisible();
        await expect(page.getByRole("status", { name: "Loading" })).toHaveCount(0);
        const labels = await page.getByRole("group", { name: /emory of / }).evaluateAll((bars) =>
          bars.flatMap((one) =>
            [...one.querySelectorAll("[role=img] > span")].flatMap((label) => {
              const box = label.getBoundingClientRect();
              const size = label.lastElementChild?.getBoundingClientRect();
              const part = label.parentElement?.getBoundingClientRect();
              if (!size || !part || box.width === 0) return [];
              const isWhole =
                size.top >= box.top - 1 &&
                size.bottom <= box.bottom + 1 &&
                size.left >= part.left &&
                size.right <= Math.min(part.right, box.right) + 1;
              return [{ text: label.textContent, isWhole }];
            }),
          ),
        );
        expect(labels.length).toBeGreaterThan(0);
        expect(labels.filter(({ isWhole }) => !isWhole)).toEqual([]);
      }
    });
});
