// @vitest-environment jsdom
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { loadPage, loadPart, watchStyles } from "./load-part";
import { PartError } from "./problem";

const notArrived = () => Promise.reject(new Error("Unable to preload CSS for http://h/assets/a.css"));

function server(...answers: boolean[]): void {
  vi.stubGlobal("fetch", () =>
    (answers.shift() ?? true) ? Promise.resolve({}) : Promise.reject(new TypeError("away")),
  );
}

beforeEach(() => vi.useFakeTimers());
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

it("waits while the server is away, and loads when it answers again", async () => {
  server(false, false, true);
  const load = vi
    .fn<() => Promise<string>>()
    .mockImplementationOnce(notArrived)
    .mockResolvedValue("the chart");
  const part = loadPart(load);
  await vi.advanceTimersByTimeAsync(4000);
  expect(load).toHaveBeenCalledTimes(1);
  await vi.advanceTimersByTimeAsync(200);
  await expect(part).resolves.toBe("the chart");
});

it("asks a server that answers again, and then says what it does not send", async () => {
  server();
  const load = vi.fn(notArrived);
  const part = loadPage(load).catch((error: unknown) => error);
  await vi.advanceTimersByTimeAsync(10_000);
  const error = await part;
  expect(error).toBeInstanceOf(PartError);
  expect(error).toMatchObject({ why: "missing" });
  expect(load).toHaveBeenCalledTimes(4);
});

it("says at once that a page cannot be loaded while the server is away", async () => {
  server(false);
  const load = vi.fn(notArrived);
  const part = loadPage(load).catch((error: unknown) => error);
  await vi.advanceTimersByTimeAsync(200);
  await expect(part).resolves.toMatchObject({ why: "away" });
  expect(load).toHaveBeenCalledTimes(1);
});

it("hands on what a part throws when it runs", async () => {
  server();
  await expect(loadPart(() => Promise.reject(new TypeError("x is undefined")))).rejects.toThrow(
    "x is undefined",
  );
});

it.each([
  ["from a server that answers", [], 200],
  ["when the server is back", [false, true], 2200],
] as const)(
  "asks for a style sheet that did not arrive again, before the part, %s",
  async (_when, answers, ms) => {
    server(...answers);
    watchStyles(document);
    const link = Object.assign(document.createElement("link"), { rel: "stylesheet", href: "/assets/a.css" });
    document.head.replaceChildren(link);
    const load = vi
      .fn<() => Promise<string>>()
      .mockImplementationOnce(notArrived)
      .mockResolvedValue("styled");
    const part = loadPart(load);
    link.dispatchEvent(new Event("error"));
    await vi.advanceTimersByTimeAsync(ms);
    const again = document.head.querySelector<HTMLLinkElement>('link[href="/assets/a.css"]');
    expect(again).not.toBe(link);
    expect(load).toHaveBeenCalledTimes(1);
    again?.dispatchEvent(new Event("load"));
    await expect(part).resolves.toBe("styled");
    expect(load).toHaveBeenCalledTimes(2);
  },
);
