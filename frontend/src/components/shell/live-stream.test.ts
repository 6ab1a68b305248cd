import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { type LiveState, LiveStream, staleKeys } from "./live-stream";

class FakeSource {
  readonly listeners = new Map<string, (event: unknown) => void>();
  closed = false;
  constructor(readonly url: string) {}
  addEventListener(name: string, listener: unknown) {
    this.listeners.set(name, listener as (event: unknown) => void);
  }
  close() {
    this.closed = true;
  }
  say(name: string, event: unknown = {}) {
    this.listeners.get(name)?.(event);
  }
  change(id: number, over: Record<string, unknown> = {}) {
    const event = { id, kind: "finding_opened", node_id: "n1", ...over };
    this.say(String(event.kind), { data: JSON.stringify(event) });
  }
}

let sources: FakeSource[] = [];
let states: LiveState["kind"][] = [];
const invalidateQueries = vi.fn(() => Promise.resolve());
const last = () => sources.at(-1) as FakeSource;

function opened(url: string): EventSource {
  const source = new FakeSource(url);
  sources.push(source);
  return source as unknown as EventSource;
}

function stream(): LiveStream {
  return new LiveStream({ invalidateQueries }, ({ kind }) => states.push(kind), opened);
}

beforeEach(() => {
  vi.useFakeTimers();
  sources = [];
  states = [];
  invalidateQueries.mockClear();
});
afterEach(() => {
  vi.useRealTimers();
});

describe("the stream of changes", () => {
  it("loads again what a change made old, once for many changes", () => {
    stream().start();
    last().say("open");
    last().change(1);
    last().change(2);
    expect(invalidateQueries).not.toHaveBeenCalled();
    vi.advanceTimersByTime(500);
    const keys = invalidateQueries.mock.calls.map(([filter]: unknown[]) =>
      JSON.stringify((filter as { queryKey: unknown }).queryKey),
    );
    expect(keys).toContain('["nodes","detail","n1"]');
    expect(new Set(keys).size).toBe(keys.length);
  });

  it("does not wait for a pause among changes that never pause", () => {
    stream().start();
    last().say("open");
    for (let id = 1; id <= 30; id += 1) {
      last().change(id);
      vi.advanceTimersByTime(100);
    }
    expect(invalidateQueries).toHaveBeenCalled();
  });

  it("comes back after the server was gone, later each time, and goes on after the last change", () => {
    stream().start();
    last().say("open");
    last().change(41);
    last().say("error");
    expect(last().closed).toBe(true);
    vi.advanceTimersByTime(1_000);
    expect(sources).toHaveLength(2);
    expect(last().url).toBe("/api/v1/events?after=41");
    last().say("error");
    vi.advanceTimersByTime(1_000);
    expect(sources).toHaveLength(2);
    vi.advanceTimersByTime(1_000);
    expect(sources).toHaveLength(3);
    last().say("open");
    expect(states.at(-1)).toBe("live");
  });

  it("says that it is away, and since when, only after some seconds without the server", () => {
    vi.setSystemTime(1_000_000);
    const told: LiveState[] = [];
    const live = new LiveStream({ invalidateQueries }, (state) => told.push(state), opened);
    live.start();
    last().say("open");
    last().say("error");
    vi.advanceTimersByTime(1_000);
    last().say("error");
    vi.advanceTimersByTime(3_999);
    expect(told.map(({ kind }) => kind)).toEqual(["live"]);
    vi.advanceTimersByTime(1);
    expect(told.at(-1)).toEqual({ kind: "away", since: 1_000_000 });
    live.stop();
  });

  it("does not say that it is away when a stream ends as planned and the next one opens", () => {
    stream().start();
    last().say("open");
    last().say("error");
    vi.advanceTimersByTime(1_000);
    last().say("open");
    vi.advanceTimersByTime(60_000);
    expect(states).toEqual(["live", "live"]);
  });

  it("is not away because nobody looked", () => {
    const live = stream();
    live.start();
    last().say("open");
    last().say("error");
    live.stop();
    vi.advanceTimersByTime(60_000);
    expect(states).toEqual(["live"]);
  });

  it("loads everything again when it does not know what it missed", () => {
    stream().start();
    last().say("open");
    expect(invalidateQueries).not.toHaveBeenCalled();
    last().say("error");
    vi.advanceTimersByTime(1_000);
    last().say("open");
    expect(invalidateQueries).toHaveBeenCalledWith();
  });

  it("is closed while nobody looks", () => {
    const live = stream();
    live.start();
    live.stop();
    expect(last().closed).toBe(true);
    vi.advanceTimersByTime(60_000);
    expect(sources).toHaveLength(1);
  });
});

it("a finished fleet plan makes no node old", () => {
  expect(staleKeys({ kind: "fleet_plan_finished", node_id: null })).toEqual([["fleet", "plans"]]);
  expect(staleKeys({ kind: "run_added", node_id: "n1" })).toContainEqual(["runs", "list"]);
});
