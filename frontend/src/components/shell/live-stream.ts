import type { QueryClient } from "@tanstack/react-query";
import type { FleetEvent } from "@/api/types";

/** Every kind has a name of its own in the stream, and a browser hears only the names it asks for. */
const KINDS: Record<FleetEvent["kind"], true> = {
  node_added: true,
  node_deleted: true,
  run_added: true,
  finding_opened: true,
  finding_changed: true,
  finding_closed: true,
  plan_in_force_set: true,
  plan_in_force_ended: true,
  plan_verified: true,
  plan_proposed: true,
  plan_approved: true,
  plan_withdrawn: true,
  plan_stale: true,
  fleet_plan_finished: true,
  events_left_out: true,
};

const PATH = "/api/v1/events";
/** Many changes that come together are one refresh, */
const GATHER_MS = 400;
/** and changes that never pause do not hold it off for longer than this. */
const MOST_GATHER_MS = 2_000;
const FIRST_RETRY_MS = 1_000;
const MOST_RETRY_MS = 30_000;
/** The server ends every stream now and then. Only one that does not come back within this time is said to be away. */
const AWAY_AFTER_MS = 5_000;

export type LiveState =
  | { kind: "connecting" }
  | { kind: "live"; since: number }
  | { kind: "away"; since: number };

type Source = Pick<EventSource, "addEventListener" | "close">;

/** The queries that a change makes old. */
export function staleKeys(event: Pick<FleetEvent, "kind" | "node_id">): readonly (readonly unknown[])[] {
  if (event.kind === "fleet_plan_finished") return [["fleet", "plans"]];
  const lists = [
    ["nodes", "list"],
    ["nodes", "selected"],
    ["fleet"],
    ...(event.kind.startsWith("plan_") ? [["plans"]] : []),
    ...(event.kind === "run_added" ? [["runs", "list"]] : []),
  ];
  if (event.node_id === null) return lists;
  const own = ["detail", "history", "runs", "processes", "report", "scenario"];
  return [...lists, ...own.map((part) => ["nodes", part, event.node_id])];
}

/**
 * The one stream of changes of a tab. It is closed while nobody looks, since a browser opens only six connections to a
 * server, and goes on after the last change it heard of; what was missed for good is loaded again.
 */
export class LiveStream {
  private source: Source | null = null;
  private lastId: string | null = null;
  private wasOpen = false;
  private retryMs = FIRST_RETRY_MS;
  private retry: ReturnType<typeof setTimeout> | undefined;
  private gather: ReturnType<typeof setTimeout> | undefined;
  private gatherUntil: number | null = null;
  private away: ReturnType<typeof setTimeout> | undefined;
  private lostAt: number | null = null;
  private readonly changed = new Map<string, readonly unknown[]>();

  constructor(
    private readonly queries: Pick<QueryClient, "invalidateQueries">,
    private readonly tell: (state: LiveState) => void,
    private readonly open: (url: string) => Source = (url) => new EventSource(url),
  ) {}

  start(): void {
    if (this.source) return;
    const source = this.open(this.lastId === null ? PATH : `${PATH}?after=${this.lastId}`);
    this.source = source;
    source.addEventListener("open", () => {
      this.retryMs = FIRST_RETRY_MS;
      // Without a change to go on after, nobody knows what happened meanwhile.
      if (this.wasOpen && this.lastId === null) void this.queries.invalidateQueries();
      this.wasOpen = true;
      this.lostAt = null;
      clearTimeout(this.away);
      this.tell({ kind: "live", since: Date.now() });
    });
    source.addEventListener("error", () => this.reconnect());
    for (const kind of Object.keys(KINDS))
      source.addEventListener(kind, (message) => this.hear(message as MessageEvent<string>));
  }

  stop(): void {
    clearTimeout(this.away);
    this.lostAt = null;
    this.close();
  }

  private close(): void {
    // What was heard is still loaded again: the gathering goes on.
    clearTimeout(this.retry);
    this.source?.close();
    this.source = null;
  }

  /** The browser gives up after an answer that is no stream, so that coming back is ours. */
  private reconnect(): void {
    this.close();
    if (this.lostAt === null) {
      const since = Date.now();
      this.lostAt = since;
      this.away = setTimeout(() => this.tell({ kind: "away", since }), AWAY_AFTER_MS);
    }
    this.retry = setTimeout(() => this.start(), this.retryMs);
    this.retryMs = Math.min(2 * this.retryMs, MOST_RETRY_MS);
  }

  private hear(message: Pick<MessageEvent<string>, "data" | "lastEventId">): void {
    const event = JSON.parse(message.data) as FleetEvent;
    this.lastId = String(event.id);
    for (const key of staleKeys(event)) this.changed.set(JSON.stringify(key), key);
    const now = Date.now();
    this.gatherUntil ??= now + MOST_GATHER_MS;
    clearTimeout(this.gather);
    this.gather = setTimeout(
      () => {
        this.gatherUntil = null;
        for (const queryKey of this.changed.values()) void this.queries.invalidateQueries({ queryKey });
        this.changed.clear();
      },
      Math.min(GATHER_MS, this.gatherUntil - now),
    );
  }
}
