import { expect, type Page } from "@playwright/test";
import { fromFragment } from "../src/pages/planner/live/address";

/** Waits until the draft in the page's address holds a text. It stands in the fragment alone, which nobody's log sees. */
export async function expectInAddress(page: Page, text: string): Promise<void> {
  await expect
    .poll(() => JSON.stringify(fromFragment(new URL(page.url()).hash)) ?? "no draft")
    .toContain(text);
  expect(new URL(page.url()).search).not.toContain(text);
}
