import type { Page } from "@playwright/test";

interface Watched {
  /** From the key to the painted number. */
  paintedMs: Promise<number>;
}

/** From a key's own time stamp to the frame in which the element found by `selector` shows another text. */
async function keyToPaint(page: Page, selector: string, key: string): Promise<number> {
  // The watch stands before the key is pressed.
  await page.evaluate((watched) => {
    const shown = document.querySelector(watched) as HTMLElement;
    const before = shown.textContent;
    (window as unknown as Watched).paintedMs = new Promise((done) => {
      let from = Number.NaN;
      document.addEventListener("keydown", (event) => (from = event.timeStamp), {
        once: true,
        capture: true,
      });
      const watch = new MutationObserver(() => {
        if (shown.textContent === before) return;
        watch.disconnect();
        requestAnimationFrame(() => done(performance.now() - from));
      });
      watch.observe(shown, { childList: true, characterData: true, subtree: true });
    });
  }, selector);
  await page.keyboard.press(key);
  return page.evaluate(() => (window as unknown as Watched).paintedMs);
}

/**
 * The least that a key which asks for a plan can cost on this machine at this moment: a plain field beside the page's
 * own root, whose key asks for the plan of a node without databases and writes the answer. No framework.
 */
async function layYardstick(page: Page): Promise<void> {
  await page.evaluate(async () => {
    const { csrf_token: csrf } = await (await fetch("/api/v1/session")).json();
    const field = document.createElement("input");
    field.id = "yardstick-key";
    const shown = document.createElement("output");
    shown.id = "yardstick";
    let count = 0;
    field.addEventListener("keydown", async () => {
      const answer = await fetch("/api/v1/plans/preview", {
        method: "POST",
        headers: { "Content-Type": "application/json", "X-CSRF-Token": csrf },
        body: JSON.stringify({ scenario: { node: { name: "empty", memory: "64GiB" } }, files: false }),
      });
      if (!answer.ok) throw new Error(`an empty preview answered ${answer.status}`);
      await answer.text();
      count += 1;
      shown.textContent = String(count);
    });
    document.body.append(field, shown);
  });
}

interface WhatIf {
  /** From the key to the painted number of pages, ascending. */
  answersMs: number[];
  /** The same for the yardstick, measured in turn with the answers, ascending. */
  yardsticksMs: number[];
}

/** Presses keys on a slider of the planner, each to its painted answer, with the yardstick in between. */
export async function measureWhatIf(page: Page, slider: string, keys: number): Promise<WhatIf> {
  const answersMs: number[] = [];
  const yardsticksMs: number[] = [];
  if ((await page.locator("#yardstick").count()) === 0) await layYardstick(page);
  for (let key = 0; key < keys; key += 1) {
    await page.locator("#yardstick-key").focus();
    yardsticksMs.push(await keyToPaint(page, "#yardstick", "ArrowRight"));
    await page.getByRole("slider", { name: slider }).focus();
    answersMs.push(await keyToPaint(page, '[data-testid="plan-headline"]', "ArrowRight"));
  }
  return { answersMs, yardsticksMs };
}

/** The value that a share of all values is not above. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}
