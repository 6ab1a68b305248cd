import type { Page } from "@playwright/test";
import { expect, type Fleet, test } from "./fixtures";

const PAGES: { name: string; path: (fleet: Fleet) => string; arrived: RegExp }[] = [
  { name: "overview", path: () => "/", arrived: /Which nodes need attention/ },
  { name: "nodes", path: () => "/nodes", arrived: /Which node do you want to plan/ },
  { name: "node", path: ({ numaId }) => `/nodes/${numaId}`, arrived: /Allocated \(pages\)/ },
  { name: "planner", path: ({ numaId }) => `/planner?node=${numaId}`, arrived: /What does .* need/ },
  { name: "plans", path: () => "/plans", arrived: /Which plan waits for whom/ },
  { name: "fleet plans", path: () => "/fleet-plans?all=true", arrived: /Which plans are there/ },
  { name: "import", path: () => "/import", arrived: /What do you have/ },
  { name: "evidence", path: () => "/evidence", arrived: /What have others published/ },
  { name: "settings", path: () => "/settings", arrived: /Who may connect/ },
];

/** More controls than any page has before the end of the document. */
const MOST_STOPS = 400;

interface Stop {
  name: string;
  /** What a reader would miss: empty where nothing. */
  lost: string;
}

/** What the browser focuses at a Tab; null beyond the last control. */
function focused(page: Page): Promise<(Stop & { id: number }) | null> {
  return page.evaluate(() => {
    const element = document.activeElement as (HTMLElement & { stop?: number }) | null;
    if (!element || element === document.body) return null;
    const shared = window as unknown as { stops?: number };
    shared.stops ??= 0;
    element.stop ??= ++shared.stops;
    const labels = [...((element as HTMLInputElement).labels ?? [])];
    // A radio button of a segmented control has no size: its label is what is seen.
    const drawn = [element, ...labels].find((part) => part.getBoundingClientRect().width > 0) ?? element;
    const { x, y, width, height } = drawn.getBoundingClientRect();
    const labelled = element.getAttribute("aria-labelledby")?.split(" ") ?? [];
    const name =
      element.getAttribute("aria-label") ||
      labelled.map((id) => document.getElementById(id)?.textContent ?? "").join(" ") ||
      labels[0]?.textContent ||
      element.textContent ||
      "";
    const isInView = width > 0 && y + height > 0 && y < innerHeight && x + width > 0 && x < innerWidth;
    const at = document.elementFromPoint(
      Math.min(Math.max(x + width / 2, 0), innerWidth - 1),
      Math.min(Math.max(y + height / 2, 0), innerHeight - 1),
    );
    const isCovered =
      at !== null &&
      !drawn.contains(at) &&
      !at.contains(drawn) &&
      !labels.some((label) => label.contains(at));
    return {
      id: element.stop,
      name: name.trim().slice(0, 60),
      lost: !isInView
        ? "out of view"
        : isCovered
          ? "covered"
          : name.trim() === ""
            ? "without a name"
            : element.tabIndex > 0
              ? "out of order"
              : "",
    };
  });
}

/** What a key reaches until the page ends or what was seen comes again. */
async function walk(page: Page, key: "Tab" | "Shift+Tab"): Promise<Stop[]> {
  const stops: Stop[] = [];
  const seen = new Set<number>();
  for (let step = 0; step < MOST_STOPS; step += 1) {
    await page.keyboard.press(key);
    const stop = await focused(page);
    if (stop === null || seen.has(stop.id)) break;
    seen.add(stop.id);
    stops.push({ name: stop.name, lost: stop.lost });
  }
  return stops;
}

/** A desk and a telephone, whose header sticks to the upper edge. */
const VIEWPORTS = [
  { width: 1360, height: 900, least: 10 },
  // Its navigation is folded away.
  { width: 390, height: 844, least: 2 },
];

for (const { least, ...viewport } of VIEWPORTS)
  test.describe(`Tab at ${viewport.width} px reaches all in the order of the page, in view and by name`, () => {
    for (const { name, path, arrived } of PAGES)
      test(name, async ({ signedIn: page, fleet }) => {
        await page.setViewportSize(viewport);
        await page.goto(fleet.server.url + path(fleet));
        await expect(page.getByText(arrived).first()).toBeVisible();
        await expect(page.getByRole("status", { name: "Loading" })).toHaveCount(0);
        const down = await walk(page, "Tab");
        expect(down.filter(({ lost }) => lost !== "")).toEqual([]);
        // A trap would end it before the page's own content, and a loop never.
        expect(down.length).toBeGreaterThan(least);
        expect(down.length).toBeLessThan(MOST_STOPS);
        // Backwards the page scrolls under what sticks to its upper edge.
        const up = await walk(page, "Shift+Tab");
        expect(up.filter(({ lost }) => lost !== "")).toEqual([]);
        expect(up.length).toBeGreaterThan(least);
      });
  });

test("a pool is made larger and smaller by the keys of a slider, and the plan follows", async ({
  signedIn: page,
  fleet,
}) => {
  await page.goto(`${fleet.server.url}/planner?node=${fleet.guestId}`);
  const answer = page.getByRole("region", { name: "The answer" });
  const buffers = page.getByRole("textbox", { name: "shared_buffers" });
  await buffers.fill("4GB");
  await expect(answer).toHaveAttribute("data-stale", "false");
  await expect(page.getByTestId("plan-pictures")).toHaveAttribute("data-stale", "false");
  const handle = page.getByRole("slider", { name: /^Size of the pool of 2M\spages on/ });
  await handle.focus();
  const headline = page.getByTestId("plan-headline");
  const pages = async () =>
    Number(/([\d,]+) pages of 2M/.exec((await headline.textContent()) ?? "")?.[1]?.replaceAll(",", ""));
  const after = async (key: string) => {
    const before = await headline.textContent();
    await handle.press(key);
    await expect(headline).not.toHaveText(before ?? "");
    await expect(page.getByTestId("plan-pictures")).toHaveAttribute("data-stale", "false");
    return pages();
  };
  const start = await pages();
  const larger = await after("ArrowRight");
  expect(larger).toBeGreaterThan(start);
  // The next key is the same handle's.
  await expect(handle).toBeFocused();
  expect(await after("ArrowLeft")).toBe(start);
  await expect(handle).toBeFocused();
  expect(await after("PageUp")).toBeGreaterThan(larger);
  await expect(handle).toBeFocused();
  const most = await after("End");
  expect(most).toBeGreaterThan(larger);
  await expect(answer).not.toContainText("Does not fit");
  await expect(handle).toBeFocused();
  await after("Home");
  await expect(buffers).toHaveValue("8MB");
  // Without a pool there is no handle; the keyboard stays where it was.
  await expect(handle).toHaveCount(0);
  await expect(page.getByRole("group", { name: /lanned memory of/ })).toBeFocused();
});
