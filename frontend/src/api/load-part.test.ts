import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { loadPart } from "./problem";

beforeEach(() => vi.useFakeTimers());
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

it("waits while the server is away, and loads when it answers again", async () => {
  const answers = [false, false, true];
  vi.stubGlobal("fetch", () =>
    answers.shift() ? Promise.resolve({}) : Promise.reject(new TypeError("away")),
  );
  let tries = 0;
  const part = loadPart(() => {
    tries += 1;
    return tries === 1 ? Promise.reject(new Error("Unable to preload CSS")) : Promise.resolve("the chart");
  });
  await vi.advanceTimersByTimeAsync(1999);
  expect(tries).toBe(1);
  await vi.advanceTimersByTimeAsync(2001);
  await expect(part).resolves.toBe("the chart");
});

it("says what a server that answers does not have", async () => {
  vi.stubGlobal("fetch", () => Promise.resolve({}));
  await expect(loadPart(() => Promise.reject(new Error("gone")))).rejects.toThrow("gone");
});
