import { useSyncExternalStore } from "react";

const TICK_MS = 1_000;

let now = new Date();
let timer: ReturnType<typeof setInterval> | undefined;
const listeners = new Set<() => void>();

function tick() {
  now = new Date();
  for (const listener of listeners) listener();
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  if (timer === undefined) {
    now = new Date();
    timer = setInterval(tick, TICK_MS);
  }
  return () => {
    listeners.delete(listener);
    if (listeners.size === 0) {
      clearInterval(timer);
      timer = undefined;
    }
  };
}

/** The present, once per second, from one clock for the whole page, so that "5 seconds ago" never stands still. */
export function useNow(): Date {
  return useSyncExternalStore(subscribe, () => now);
}
