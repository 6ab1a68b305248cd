// @vitest-environment jsdom
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { inIdleTime } from "./idle-queue";

beforeEach(() => void vi.useFakeTimers());

afterEach(() => {
  vi.runAllTimers();
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

it("runs one task per idle moment, in the order given, and not the ones that were dropped", () => {
  const ran: string[] = [];
  inIdleTime(() => ran.push("first"));
  const drop = inIdleTime(() => ran.push("dropped"));
  inIdleTime(() => ran.push("second"));
  drop();
  expect(ran).toEqual([]);
  vi.advanceTimersToNextTimer();
  expect(ran).toEqual(["first"]);
  vi.advanceTimersToNextTimer();
  expect(ran).toEqual(["first", "second"]);
  expect(vi.getTimerCount()).toBe(0);
});

it("lets a key that waits for the main thread go first", () => {
  const isInputPending = vi.fn(() => true);
  vi.stubGlobal("navigator", { scheduling: { isInputPending } });
  const ran: string[] = [];
  inIdleTime(() => ran.push("picture"));
  vi.advanceTimersToNextTimer();
  expect(ran).toEqual([]);
  isInputPending.mockReturnValue(false);
  vi.advanceTimersToNextTimer();
  expect(ran).toEqual(["picture"]);
});

it("takes further tasks while one runs", () => {
  const ran: string[] = [];
  inIdleTime(() => {
    ran.push("outer");
    inIdleTime(() => ran.push("inner"));
  });
  vi.advanceTimersToNextTimer();
  expect(ran).toEqual(["outer"]);
  expect(vi.getTimerCount()).toBe(1);
  vi.advanceTimersToNextTimer();
  expect(ran).toEqual(["outer", "inner"]);
});
