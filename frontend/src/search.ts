/**
 * What the addresses of the pages hold. A bad value falls back, so that an old or cut-off link still opens. Written by
 * hand: every page needs it at once, and a library for it would weigh more than the pages.
 */

type Search = Record<string, unknown>;

/** The longest name that a node, a token or a scenario can have. */
export const NAME_CHARACTERS = 253;

const NODE_SORTS = [
  "name",
  "last_report_at",
  "mem_total_bytes",
  "pool_bytes",
  "pool_idle_bytes",
  "mem_available_bytes",
  "findings",
] as const;
const NODE_STATES = ["wrong", "attention"] as const;
const PLAN_STATES = ["match", "short", "idle", "drifted", "none"] as const;
const MOST_LABELS = 16;
const MOST_RUNS = 6;

function text(value: unknown, most = 2000): string | undefined {
  return typeof value === "string" && value.length <= most ? value : undefined;
}

function word<T extends string>(value: unknown, words: readonly T[]): T | undefined {
  return words.find((known) => known === value);
}

/** Segments and a query, with nothing that a browser drops or resolves: what is left could name another host. */
const OWN_PATH = /^(?:\/(?![./\\])[^/\\?#\s\p{C}]*)+(?:\?[^#\s\p{C}]*)?$/u;

/** Only a path of this dashboard, so that a link cannot send a reader elsewhere after the login. */
export function loginSearch(search: Search): { next?: string } {
  const next = text(search.next, 50_000);
  return { next: next !== undefined && OWN_PATH.test(next) ? next : undefined };
}

/** Which nodes are meant, in the words of the API's selector. */
export interface NodeSelection {
  q?: string;
  /** `key=value`, or `key` alone. */
  label?: string[];
  machine_type?: string;
  group?: string;
  architecture?: string;
  finding?: string;
  state?: (typeof NODE_STATES)[number];
  plan_state?: (typeof PLAN_STATES)[number];
  stale?: boolean;
  synthetic?: boolean;
}

export interface NodesSearch extends NodeSelection {
  sort?: (typeof NODE_SORTS)[number];
  /** Sorted from the largest down. */
  down?: boolean;
  /** Groups of like nodes instead of nodes. */
  view?: "groups";
  /** Columns beside the name, if not the usual ones. */
  columns?: string[];
}

function flag(value: unknown): boolean | undefined {
  return typeof value === "boolean" ? value : undefined;
}

function texts(value: unknown, most: number, characters: number): string[] | undefined {
  const list = Array.isArray(value) ? value : [value];
  const found = list.map((item) => text(item, characters)).filter((item) => item !== undefined);
  return found.length > 0 ? found.slice(0, most) : undefined;
}

export function nodeSelection(search: Search): NodeSelection {
  return {
    q: text(search.q, NAME_CHARACTERS),
    label: texts(search.label, MOST_LABELS, 256),
    machine_type: text(search.machine_type, 256),
    group: text(search.group, 64),
    architecture: text(search.architecture, 64),
    finding: text(search.finding, 64),
    state: word(search.state, NODE_STATES),
    plan_state: word(search.plan_state, PLAN_STATES),
    stale: flag(search.stale),
    synthetic: flag(search.synthetic),
  };
}

export function nodesSearch(search: Search): NodesSearch {
  return {
    ...nodeSelection(search),
    sort: word(search.sort, NODE_SORTS),
    down: search.down === true ? true : undefined,
    view: search.view === "groups" ? "groups" : undefined,
    columns: texts(search.columns, 20, 40),
  };
}

interface FleetPlanSearch extends NodeSelection {
  /** A saved scenario to plan; without one, each node as it runs. */
  saved?: string;
  /** All nodes, where nothing else selects: never by itself. */
  all?: boolean;
}

/** The form of a new fleet plan: which nodes, and which scenario. */
export function fleetPlanSearch(search: Search): FleetPlanSearch {
  return { ...nodeSelection(search), saved: text(search.saved), all: search.all === true ? true : undefined };
}

export const SEVERITIES = ["fine", "attention", "wrong"] as const;

/** What is shown of a fleet plan's nodes. */
export interface FleetPlanResultSearch {
  severity?: (typeof SEVERITIES)[number];
  group?: number;
  q?: string;
}

export function fleetPlanResultSearch(search: Search): FleetPlanResultSearch {
  return {
    severity: word(search.severity, SEVERITIES),
    group: typeof search.group === "number" && Number.isInteger(search.group) ? search.group : undefined,
    q: text(search.q, NAME_CHARACTERS),
  };
}

/** Whether the overview counts made-up nodes beside real ones. */
export function overviewSearch(search: Search): { synthetic?: boolean } {
  return { synthetic: search.synthetic === true ? true : undefined };
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

export const PLAN_STEPS = ["draft", "proposed", "approved", "in_force", "superseded"] as const;

/** Which kept plans are listed. */
export function plansSearch(search: Search): { state?: (typeof PLAN_STEPS)[number] } {
  return { state: word(search.state, PLAN_STEPS) };
}
