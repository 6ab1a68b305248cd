import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { Answers, Asker, BURST, MOST_ANSWERS, REQUESTS_PER_MINUTE } from "./asker";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

interface Input {
  node: string;
  value: number;
}

/** A server that takes `tookMs` for an answer, and what it was asked and what was told. */
function page(tookMs: number) {
  const asked: number[] = [];
  const told: (number | string)[] = [];
  const stopped: number[] = [];
  const asker = new Asker<Input, number>({
    request: ({ value }, signal) =>
      new Promise((answer, refuse) => {
        asked.push(value);
        signal.addEventListener("abort", () => stopped.push(value));
        setTimeout(() => (value < 0 ? refuse(new Error("refused")) : answer(10 * value)), tookMs);
      }),
    keyOf: (input) => JSON.stringify(input),
    isUseless: (old, wanted) => old.node !== wanted.node,
    answered: (_, answer, error) => told.push(answer ?? (error as Error).message),
    now: () => Date.now(),
  });
  return { asker, asked, told, stopped };
}

it("answers keep coming while edits come faster than the server answers", async () => {
  const { asker, asked, told, stopped } = page(400);
  // An edit each 16 ms for four seconds: a slider that is dragged.
  for (let value = 1; value <= 250; value += 1) {
    asker.want({ node: "a", value });
    await vi.advanceTimersByTimeAsync(16);
  }
  expect(told.length).toBeGreaterThanOrEqual(8);
  expect(stopped).toEqual([]);
  await vi.advanceTimersByTimeAsync(1000);
  expect(asked.at(-1)).toBe(250);
  expect(told.at(-1)).toBe(2500);
});

it("asks less often than the server's limit, and still for the newest input", async () => {
  const { asker, asked, told } = page(1);
  const minutes = 3;
  for (let value = 0; value < minutes * 60 * 50; value += 1) {
    asker.want({ node: "a", value });
    await vi.advanceTimersByTimeAsync(20);
  }
  expect(asked.length).toBeLessThanOrEqual(BURST + minutes * REQUESTS_PER_MINUTE);
  expect(asked.length).toBeGreaterThan(0.9 * minutes * REQUESTS_PER_MINUTE);
  await vi.advanceTimersByTimeAsync(1000);
  expect(told.at(-1)).toBe(10 * (minutes * 60 * 50 - 1));
});

it("asks nothing twice when a step is taken back", async () => {
  const { asker, asked, told } = page(5);
  for (const value of [1, 2, 1]) {
    asker.want({ node: "a", value });
    await vi.advanceTimersByTimeAsync(10);
  }
  expect(asked).toEqual([1, 2]);
  expect(told).toEqual([10, 20, 10]);
});

it("does not show an older answer after one that was remembered", async () => {
  const { asker, told } = page(50);
  asker.want({ node: "a", value: 1 });
  await vi.advanceTimersByTimeAsync(60);
  asker.want({ node: "a", value: 2 });
  await vi.advanceTimersByTimeAsync(10);
  asker.want({ node: "a", value: 1 });
  await vi.advanceTimersByTimeAsync(100);
  expect(told.at(-1)).toBe(10);
});

it("gives up the answer for another node at once", async () => {
  const { asker, asked, stopped, told } = page(5000);
  asker.want({ node: "a", value: 1 });
  asker.want({ node: "b", value: 2 });
  expect(stopped).toEqual([1]);
  expect(asked).toEqual([1, 2]);
  await vi.advanceTimersByTimeAsync(6000);
  expect(told).toEqual([20]);
});

it("goes on after a refusal, and does not remember it", async () => {
  const { asker, asked, told } = page(5);
  for (const value of [-1, 3, -1]) {
    asker.want({ node: "a", value });
    await vi.advanceTimersByTimeAsync(10);
  }
  expect(asked).toEqual([-1, 3, -1]);
  expect(told).toEqual(["refused", 30, "refused"]);
});

it("says nothing after it was stopped", async () => {
  const { asker, told, stopped } = page(5);
  asker.want({ node: "a", value: 1 });
  asker.stop();
  await vi.advanceTimersByTimeAsync(100);
  expect(told).toEqual([]);
  expect(stopped).toEqual([1]);
});

it("remembers a bounded number of answers, and none that is old", () => {
  const answers = new Answers<number>(() => Date.now());
  for (let index = 0; index < 10 * MOST_ANSWERS; index += 1) answers.put(String(index), index);
  expect(answers.size).toBe(MOST_ANSWERS);
  expect(answers.get("0")).toBeUndefined();
  expect(answers.get(String(10 * MOST_ANSWERS - 1))).toBe(10 * MOST_ANSWERS - 1);
  vi.advanceTimersByTime(61_000);
  expect(answers.get(String(10 * MOST_ANSWERS - 1))).toBeUndefined();
});
