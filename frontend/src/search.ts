/**
 * What the addresses of the pages hold. A bad value falls back, so that an old or cut-off link still opens. Written by
 * hand: every page needs it at once, and a library for it would weigh more than the pages.
 */

type Search = Record<string, unknown>;

/** The longest name that a node, a token or a scenario can have. */
export const NAME_CHARACTERS = 253;

export const NODE_KINDS = ["any", "physical", "virtual"] as const;
export const NODE_POOLS = ["any", "reserved", "none"] as const;
const MOST_RUNS = 6;

function text(value: unknown, most = 2000): string | undefined {
  return typeof value === "string" && value.length <= most ? value : undefined;
}

function word<T extends string>(value: unknown, words: readonly T[]): T | undefined {
  return words.find((known) => known === value);
}

/** Only a path of this dashboard, so that a link cannot send a reader elsewhere after the login. */
export function loginSearch(search: Search): { next?: string } {
  const next = text(search.next, 50_000);
  return { next: next !== undefined && /^\/(?![/\\])/.test(next) ? next : undefined };
}

export interface NodesSearch {
  q?: string;
  kind?: (typeof NODE_KINDS)[number];
  pools?: (typeof NODE_POOLS)[number];
  sort?: string;
  /** Sorted from the largest down. */
  down?: boolean;
}

export function nodesSearch(search: Search): NodesSearch {
  return {
    q: text(search.q, NAME_CHARACTERS),
    kind: word(search.kind, NODE_KINDS),
    pools: word(search.pools, NODE_POOLS),
    sort: text(search.sort, 40),
    down: search.down === true ? true : undefined,
  };
}

export function compareSearch(search: Search): { runs?: string[]; layout?: string } {
  const runs = Array.isArray(search.runs) ? search.runs.filter((run) => typeof run === "string") : undefined;
  return { runs: runs && runs.length <= MOST_RUNS ? runs : undefined, layout: text(search.layout) };
}

export interface PlannerSearch {
  node?: string;
  /** A saved scenario that is open. */
  saved?: string;
  /** The form, as the planner's model keeps it. Read leniently there. */
  form?: unknown;
}

export function plannerSearch(search: Search): PlannerSearch {
  return { node: text(search.node), saved: text(search.saved), form: search.form };
}

export function nodeSearch(search: Search): { tab?: string } {
  return { tab: text(search.tab, 40) };
}
