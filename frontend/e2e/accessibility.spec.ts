import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { Page } from "@playwright/test";
import type { AxeResults } from "axe-core";
import { expect, type Fleet, test } from "./fixtures";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"];
/** Of the rules of these tags, those whose verdict depends on colours. */
const COLOUR_RULES = ["color-contrast", "link-in-text-block"];

interface RunOnly {
  type: "tag" | "rule";
  values: string[];
}

const FULL_FORM = {
  databases: [
    {
      name: "main",
      engine: "postgresql",
      settings: { shared_buffers: "8GB" },
      workload: { benefit_table: "5, 42428\n15, 78992\n25, 108078\n45, 127829\n75, 133185" },
    },
  ],
  tenants: [{ name: "app", kind: "pod", count: "20", request: "6Gi", limit: "8Gi", numa_node: "1" }],
};

const TOO_LARGE = {
  databases: [{ name: "main", engine: "postgresql", settings: { shared_buffers: "900GB" } }],
};

/** Every page, and a heading or text that shows that its content has arrived. */
const PAGES: { name: string; path: (fleet: Fleet) => string; arrived: RegExp }[] = [
  { name: "overview", path: () => "/", arrived: /Which nodes need attention/ },
  { name: "nodes", path: () => "/nodes", arrived: /Which node do you want to plan/ },
  ...["memory", "processes", "rows", "pressure", "scatter", "runs", "machine", "report"].map((tab) => ({
    name: `node, ${tab}`,
    path: ({ guestId }: Fleet) => `/nodes/${guestId}?tab=${tab}`,
    arrived: /dependent read/,
  })),
  { name: "node with pools", path: ({ numaId }) => `/nodes/${numaId}`, arrived: /Allocated \(pages\)/ },
  {
    name: "node without a run",
    path: ({ numaId }) => `/nodes/${numaId}?tab=rows`,
    arrived: /has not been measured/,
  },
  { name: "compare", path: () => "/compare", arrived: /Choose at least two runs|nothing to compare/ },
  {
    name: "planner",
    path: ({ numaId }) => `/planner?node=${numaId}`,
    arrived: /What does .* need/,
  },
  {
    name: "planner with a table and a bound workload",
    path: ({ numaId }) => `/planner?node=${numaId}&form=${encodeURIComponent(JSON.stringify(FULL_FORM))}`,
    arrived: /of the best measured throughput/,
  },
  { name: "groups of like nodes", path: () => "/nodes?view=groups", arrived: /such as/ },
  { name: "fleet plans", path: () => "/fleet-plans", arrived: /Which plans are there/ },
  {
    name: "planner without a node, its risk unknown",
    path: () => "/planner",
    arrived: /What does .* need/,
  },
  {
    name: "planner, does not fit",
    path: ({ numaId }) => `/planner?node=${numaId}&form=${encodeURIComponent(JSON.stringify(TOO_LARGE))}`,
    arrived: /Does not fit/,
  },
  { name: "evidence", path: () => "/evidence", arrived: /What have others published/ },
  { name: "settings", path: () => "/settings", arrived: /Who may connect/ },
];

/** What is not found is not described either: axe takes longer for the selectors of what passes than for its rules. */
async function violationsOf(page: Page, runOnly: RunOnly): Promise<string[]> {
  const violations = await page.evaluate(async (only) => {
    const { axe } = globalThis as unknown as { axe: { run: (options: unknown) => Promise<AxeResults> } };
    return (await axe.run({ runOnly: only, resultTypes: ["violations"] })).violations;
  }, runOnly);
  return violations.flatMap((violation) =>
    violation.nodes.map((node) => `${violation.id}: ${node.target.join(" ")} ${node.failureSummary ?? ""}`),
  );
}

/** Switches the system's preference, and waits until the page shows it and no colour is on its way. */
async function showTheme(page: Page, colorScheme: "light" | "dark"): Promise<void> {
  await page.emulateMedia({ colorScheme });
  await expect(page.locator("html")).toHaveAttribute("data-mantine-color-scheme", colorScheme);
  await page.evaluate(async () => {
    await new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)));
    const fading = document.getAnimations().filter((animation) => animation instanceof CSSTransition);
    await Promise.allSettled(fading.map((animation) => animation.finished));
  });
}

/** What axe finds: all rules in light; in dark, where the document is the same, the rules that look at colours. */
async function violations(page: Page): Promise<string[]> {
  await page.evaluate(AXE);
  const found = await violationsOf(page, { type: "tag", values: TAGS });
  await showTheme(page, "dark");
  for (const text of await violationsOf(page, { type: "rule", values: COLOUR_RULES }))
    found.push(`dark: ${text}`);
  await showTheme(page, "light");
  return found;
}

test.describe("axe finds nothing, light and dark", () => {
  for (const { name, path, arrived } of PAGES) {
    test(name, async ({ signedIn: page, fleet }) => {
      await page.goto(fleet.server.url + path(fleet));
      await expect(page.getByText(arrived).first()).toBeVisible();
      await expect(page.getByRole("status", { name: "Loading" })).toHaveCount(0);
      expect(await violations(page)).toEqual([]);
    });
  }

  test("a fleet plan that has ended", async ({ signedIn: page, fleet }) => {
    const id = await fleet.server.startFleetPlan("axe");
    await page.goto(`${fleet.server.url}/fleet-plans/${id}`);
    await expect(page.getByRole("region", { name: "Nodes of the plan" })).toBeVisible();
    expect(await violations(page)).toEqual([]);
  });

  test("planner with a wrong input", async ({ signedIn: page, fleet, watch }) => {
    watch.expectErrors(/422/);
    await page.goto(`${fleet.server.url}/planner?node=${fleet.numaId}`);
    await page.getByRole("textbox", { name: "shared_buffers" }).fill("8 bananas");
    await expect(page.getByRole("alert")).toContainText("one input is not valid");
    expect(await violations(page)).toEqual([]);
  });

  test("planner for a viewer", async ({ page, fleet, watch }) => {
    watch.expectErrors(/401/);
    await page.goto(`${fleet.server.url}/login`);
    await page.getByLabel("Token").fill(await fleet.server.newToken("reader-axe", "viewer"));
    await page.getByRole("button", { name: "Sign in" }).click();
    await expect(page.getByRole("heading", { level: 1, name: "Overview" })).toBeVisible();
    await page.goto(`${fleet.server.url}/planner?node=${fleet.numaId}`);
    await expect(page.getByText("Your role may try plans and not save them.")).toBeVisible();
    await expect(page.getByTestId("plan-headline")).toBeVisible();
    expect(await violations(page)).toEqual([]);
  });

  test("planner with unsaved changes, then with a conflict, compared", async ({
    signedIn: page,
    fleet,
    watch,
  }) => {
    watch.expectErrors(/412/);
    const id = await fleet.server.saveScenario("axe", "8GB");
    await page.goto(`${fleet.server.url}/planner?saved=${id}`);
    await page.getByRole("textbox", { name: "shared_buffers" }).fill("9GB");
    await page.getByRole("button", { name: "Compare" }).click();
    await expect(page.getByText("Unsaved changes, kept in the address")).toBeVisible();
    await expect(page.getByRole("region", { name: "Plans side by side" })).toBeVisible();
    expect(await violations(page)).toEqual([]);
    // Another reader saves in between.
    const status = await page.evaluate(async (scenarioId) => {
      const url = `/api/v1/scenarios/${scenarioId}`;
      const session = await (await fetch("/api/v1/session")).json();
      const { name, node_id, scenario } = await (await fetch(url)).json();
      const answer = await fetch(url, {
        method: "PUT",
        headers: {
          "Content-Type": "application/json",
          "If-Match": '"1"',
          "X-CSRF-Token": session.csrf_token,
        },
        body: JSON.stringify({ name, node_id, scenario }),
      });
      return answer.status;
    }, id);
    expect(status).toBeLessThan(300);
    await page.getByRole("button", { name: "Save", exact: true }).click();
    await expect(page.getByText(/somebody changed this scenario since you opened it/)).toBeVisible();
    expect(await violations(page)).toEqual([]);
  });

  test("login", async ({ page, fleet, watch }) => {
    watch.expectErrors(/401/);
    await page.goto(`${fleet.server.url}/login`);
    await expect(page.getByRole("heading", { name: "Sign in to hugeplan" })).toBeVisible();
    expect(await violations(page)).toEqual([]);
  });
});

test.describe("light and dark", () => {
  const background = (page: Page) => page.evaluate(() => getComputedStyle(document.body).backgroundColor);

  test("follows the system, and a choice in the settings stays", async ({ signedIn: page, fleet }) => {
    await page.goto(`${fleet.server.url}/settings`);
    const light = await background(page);
    await page.emulateMedia({ colorScheme: "dark" });
    await expect.poll(() => background(page)).not.toBe(light);
    await page.emulateMedia({ colorScheme: "light" });
    await expect.poll(() => background(page)).toBe(light);
    await page.getByText("Dark", { exact: true }).click();
    await expect.poll(() => background(page)).not.toBe(light);
    await page.reload();
    await expect.poll(() => background(page)).not.toBe(light);
  });
});

test.describe("keyboard", () => {
  test("the first tab stop skips to the content", async ({ overview: page }) => {
    await page.keyboard.press("Tab");
    await expect(page.getByRole("link", { name: "Skip to the content" })).toBeFocused();
  });

  test("a chart is read with the arrow keys, and as a table", async ({ signedIn: page, fleet }) => {
    await page.goto(`${fleet.server.url}/nodes/${fleet.guestId}`);
    const figure = page.getByRole("figure", { name: /^Latency by page size/ });
    await figure.getByRole("application").focus();
    await page.keyboard.press("ArrowRight");
    await expect(figure.locator("table caption")).toHaveText(/(KiB|MiB|GiB)$/);
    await expect(figure.locator("table")).toContainText("4K base pages");
    await figure.getByText("Table", { exact: true }).click();
    await expect(figure.getByRole("columnheader", { name: "4K base pages" })).toBeVisible();
  });

  test("every control of the planner is reached by Tab", async ({ signedIn: page, fleet }) => {
    await page.goto(`${fleet.server.url}/planner`);
    const input = page.getByRole("textbox", { name: "shared_buffers" });
    await expect(input).toBeVisible();
    await page.getByRole("textbox", { name: "Name" }).first().focus();
    const reached: string[] = [];
    for (let step = 0; step < 12; step += 1) {
      await page.keyboard.press("Tab");
      reached.push(
        await page.evaluate(() => document.activeElement?.id || document.activeElement?.tagName || "BODY"),
      );
    }
    expect(reached).toContain(await input.getAttribute("id"));
    expect(reached).not.toContain("BODY");
  });

  test("a term is explained by keyboard, with its source", async ({ signedIn: page, fleet }) => {
    await page.goto(`${fleet.server.url}/nodes/${fleet.numaId}`);
    const term = page.getByRole("button", { name: "Surplus (pages)" });
    await term.press("Enter");
    const box = page.getByRole("dialog", { name: "Surplus" });
    await expect(box).toContainText("nr_overcommit_hugepages");
    await expect(box.getByRole("link", { name: "Linux kernel, HugeTLB Pages" })).toBeFocused();
    expect(await violations(page)).toEqual([]);
    await page.keyboard.press("Escape");
    await expect(box).toHaveCount(0);
    await expect(term).toBeFocused();
  });
});
