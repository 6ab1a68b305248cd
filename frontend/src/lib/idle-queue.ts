type Task = () => void;

interface InputAware {
  scheduling?: { isInputPending?: () => boolean };
}

/** At the latest after this time a task runs, however busy the page is. */
const LATEST_MS = 500;

const waiting: Task[] = [];
let handle: number | ReturnType<typeof setTimeout> | undefined;

// Safari has no idle callbacks; a timer there lets events in between two tasks all the same.
const hasIdleTime = typeof window !== "undefined" && "requestIdleCallback" in window;

function whenIdle(run: Task): void {
  handle = hasIdleTime ? window.requestIdleCallback(run, { timeout: LATEST_MS }) : setTimeout(run, 1);
}

function runOne(): void {
  // A key that waits for the main thread goes first.
  if ((navigator as InputAware).scheduling?.isInputPending?.()) {
    whenIdle(runOne);
    return;
  }
  try {
    waiting.shift()?.();
  } finally {
    handle = undefined;
    if (waiting.length > 0) whenIdle(runOne);
  }
}

/** Runs a task when the page has nothing better to do, one per idle moment, in the order given. Answers what drops it. */
export function inIdleTime(task: Task): () => void {
  waiting.push(task);
  if (handle === undefined) whenIdle(runOne);
  return () => {
    const at = waiting.indexOf(task);
    if (at >= 0) waiting.splice(at, 1);
  };
}
