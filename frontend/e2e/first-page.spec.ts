import { expect, test } from "./fixtures";

/** The first page is to be usable within this time of the navigation. The line that is printed says what was measured. */
const INTERACTIVE_MS = 1000;
/**
 * By how much others on the machine slow a script down: equal parts of work, the time of all against that of the fastest.
 * The fastest had a core to itself; the page took its time beside the same others.
 */
function slowdown(): number {
  const parts = Array.from({ length: 70 }, () => {
    const begun = performance.now();
    let sum = 0;
    for (let n = 0; n < 2_000_000; n += 1) sum += Math.sqrt(n);
    return sum > 0 ? performance.now() - begun : Number.NaN;
  }).slice(10);
  return parts.reduce((sum, part) => sum + part) / (parts.length * Math.min(...parts));
}

test("the first page is usable at once, with nothing in the cache", async ({
  signedIn: page,
  fleet,
  browser,
}) => {
  const cookies = await page.context().cookies();
  const visits: { usableMs: number; slower: number }[] = [];
  for (let visit = 0; visit < 7; visit += 1) {
    // A context of its own has a cache of its own.
    const context = await browser.newContext();
    await context.addCookies(cookies);
    const fresh = await context.newPage();
    await fresh.addInitScript(() => {
      // Usable: the page's own content is there, and the main thread is free to take an event.
      const seen = new MutationObserver(() => {
        if (!document.querySelector("h1") || !document.querySelector('#content section a[href^="/nodes"]'))
          return;
        seen.disconnect();
        requestAnimationFrame(() => setTimeout(() => performance.mark("usable")));
      });
      seen.observe(document, { childList: true, subtree: true });
    });
    await fresh.goto(`${fleet.server.url}/`);
    const usable = await fresh.waitForFunction(() => performance.getEntriesByName("usable")[0]?.startTime);
    const slower = await fresh.evaluate(slowdown);
    visits.push({ usableMs: Number(await usable.jsonValue()), slower });
    await context.close();
  }
  const aloneMs = Math.min(...visits.map(({ usableMs, slower }) => usableMs / slower));
  const all = visits.map(({ usableMs, slower }) => `${usableMs.toFixed(0)} (/ ${slower.toFixed(2)})`);
  console.log(`first page usable: ${aloneMs.toFixed(0)} ms of ${INTERACTIVE_MS} ms; ${all.join(", ")}`);
  expect(aloneMs).toBeLessThan(INTERACTIVE_MS);
});
