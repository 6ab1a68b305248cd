import { expect, test } from "./fixtures";

/** The first page is to be usable within this time of the navigation. The line that is printed says what was measured. */
const INTERACTIVE_MS = 1000;
/** What a page of the same server without any script takes, where the machine does nothing else. */
const QUIET_YARDSTICK_MS = 25;

test("the first page is usable at once, with nothing in the cache", async ({
  signedIn: page,
  fleet,
  browser,
}) => {
  const cookies = await page.context().cookies();
  const takenMs: number[] = [];
  const yardsticksMs: number[] = [];
  for (let visit = 0; visit < 7; visit += 1) {
    // A context of its own has a cache of its own.
    const context = await browser.newContext();
    await context.addCookies(cookies);
    const fresh = await context.newPage();
    await fresh.goto(`${fleet.server.url}/healthz`);
    yardsticksMs.push(
      await fresh.evaluate(
        () => (performance.getEntriesByType("navigation")[0] as PerformanceNavigationTiming).responseEnd,
      ),
    );
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
    takenMs.push(Number(await usable.jsonValue()));
    await context.close();
  }
  // The best of several visits is what the page takes; what others on the machine take besides is in the rest.
  const [taken, yardstick] = [Math.min(...takenMs), Math.min(...yardsticksMs)];
  const all = takenMs.map((visit) => visit.toFixed(0)).join(", ");
  console.log(
    `first page usable: ${taken.toFixed(0)} ms of ${INTERACTIVE_MS} ms (${all}); a bare answer: ${yardstick.toFixed(0)} ms`,
  );
  const factor = Math.max(1, yardstick / QUIET_YARDSTICK_MS);
  expect(taken).toBeLessThan(INTERACTIVE_MS * factor);
});
