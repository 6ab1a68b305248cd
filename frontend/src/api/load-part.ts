import { isChunkError, PartError } from "./problem";

/** Whether the server answers at all, whatever it says. */
export function serverAnswers(): Promise<boolean> {
  return fetch("/healthz", { cache: "no-store" }).then(
    () => true,
    () => false,
  );
}

/**
 * Pauses before a part is asked for again of a server that answers. The first also covers a page that is being left,
 * whose requests the browser drops: it is gone before the pause ends.
 */
const RETRY_PAUSES_MS = [150, 800, 2500];
const AWAY_PAUSE_MS = 2000;

const pause = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));

/** Style sheets that did not arrive. Vite asks for each once: a part tried again would come without its styles. */
const missingStyles = new Set<HTMLLinkElement>();
let mending: Promise<unknown> = Promise.resolve();

/** Remembers each style sheet that does not arrive. Errors of links do not bubble, hence the capture. */
export function watchStyles(page: Document): void {
  page.addEventListener(
    "error",
    ({ target }) => {
      if (target instanceof HTMLLinkElement && target.rel === "stylesheet") missingStyles.add(target);
    },
    true,
  );
}

function askAgain(link: HTMLLinkElement): Promise<void> {
  missingStyles.delete(link);
  const again = link.cloneNode() as HTMLLinkElement;
  return new Promise((resolve, reject) => {
    again.addEventListener("load", () => resolve());
    again.addEventListener("error", () => reject(new Error(`Unable to preload CSS for ${again.href}`)));
    link.replaceWith(again);
  });
}

/** Asks for all missing style sheets again. Parts that share one wait for the same request. */
function mendStyles(): Promise<unknown> {
  mending = mending.catch(() => undefined).then(() => Promise.all([...missingStyles].map(askAgain)));
  return mending;
}

async function tryAgain<T>(load: () => Promise<T>, serverAway: () => Promise<void>): Promise<T> {
  let failures = 0;
  for (let isAgain = false; ; isAgain = true) {
    try {
      if (isAgain) await mendStyles();
      return await load();
    } catch (error) {
      if (!isChunkError(error)) throw error;
      const wait = RETRY_PAUSES_MS[failures];
      if (wait === undefined) throw new PartError(error, "missing");
      await pause(wait);
      if (await serverAnswers()) {
        failures += 1;
      } else {
        await serverAway();
        failures = 0;
      }
    }
  }
}

/** Loads a page. Throws a `PartError` while the server is away, and when an answering server does not send the page. */
export function loadPage<T>(load: () => Promise<T>): Promise<T> {
  return tryAgain(load, () => Promise.reject(new PartError(null, "away")));
}

/**
 * Loads a part of a page, such as a chart. While the server is away the part waits, and the page around it stays: an
 * error would take the page and what was typed into it. Throws only what an answering server does not send.
 */
export function loadPart<T>(load: () => Promise<T>): Promise<T> {
  return tryAgain(load, async () => {
    do await pause(AWAY_PAUSE_MS);
    while (!(await serverAnswers()));
  });
}
