import type { Scenario } from "@/api/types";
import {
  type DatabaseForm,
  freeName,
  fromScenario,
  initialForm,
  type PlannerForm,
  readForm,
} from "./planner-form";

type Json = Record<string, unknown>;

/** What a reader edits: the form, and the node of the fleet that it is planned for. */
export interface Draft {
  form: PlannerForm;
  nodeId: string | null;
}

/** A draft with its way back and forth. */
export interface DraftHistory {
  past: readonly Draft[];
  present: Draft;
  future: readonly Draft[];
  /** When the present was last edited, so that one stretch of typing is one step back. */
  editedAtMs: number;
}

const MOST_STEPS = 100;
/** Edits that follow each other faster than this are one step. */
const ONE_STEP_MS = 700;

export function startHistory(draft: Draft): DraftHistory {
  return { past: [], present: draft, future: [], editedAtMs: Number.NEGATIVE_INFINITY };
}

/** A further edit; it leaves no way forth. */
export function edit(history: DraftHistory, draft: Draft, nowMs: number): DraftHistory {
  if (sameDraft(history.present, draft)) return history;
  const continues = nowMs - history.editedAtMs < ONE_STEP_MS && history.past.length > 0;
  const past = continues ? history.past : [...history.past, history.present].slice(-MOST_STEPS);
  return { past, present: draft, future: [], editedAtMs: nowMs };
}

export function undo(history: DraftHistory): DraftHistory {
  const previous = history.past.at(-1);
  if (!previous) return history;
  return {
    past: history.past.slice(0, -1),
    present: previous,
    future: [history.present, ...history.future],
    editedAtMs: Number.NEGATIVE_INFINITY,
  };
}

export function redo(history: DraftHistory): DraftHistory {
  const [next, ...future] = history.future;
  if (!next) return history;
  return {
    past: [...history.past, history.present],
    present: next,
    future,
    editedAtMs: Number.NEGATIVE_INFINITY,
  };
}

export function sameDraft(a: Draft, b: Draft): boolean {
  return a.nodeId === b.nodeId && JSON.stringify(a.form) === JSON.stringify(b.form);
}

/** The draft of a saved scenario, and what of it the form cannot show. */
export function savedDraft(scenario: Scenario): { draft: Draft; notShown: string[] } {
  const { form, notShown } = fromScenario(scenario.scenario);
  return { draft: { form, nodeId: scenario.node_id }, notShown };
}

/** Whether a form's databases are only what it was opened with: nobody typed them. */
function areInitial(databases: readonly DatabaseForm[]): boolean {
  return JSON.stringify(databases) === JSON.stringify(initialForm().databases);
}

/** The databases of the form that somebody typed or changed, against those that the node `before` brought. */
function typedDatabases(databases: readonly DatabaseForm[], before: Json | null): readonly DatabaseForm[] {
  if (areInitial(databases)) return [];
  const untouched = new Set(
    (before ? runningDatabases(before) : []).map((database) => JSON.stringify(database)),
  );
  return databases.filter((database) => !untouched.has(JSON.stringify(database)));
}

/** What a node runs, as the form has it. */
export function runningDatabases(scenario: Json): DatabaseForm[] {
  return fromScenario(scenario).form.databases;
}

/** What somebody changed of a database that runs: each with what holds today, such as "shared_buffers = 128MB". */
export function changesToRunning(database: DatabaseForm, running: DatabaseForm): string[] {
  const described = ({ engine, version, settings, workload }: DatabaseForm): Map<string, string> =>
    new Map([
      ["engine", engine],
      ["version", version?.trim() ?? ""],
      ["active connections", workload?.active_connections?.trim() ?? ""],
      ...Object.entries(settings).map(([name, value]) => [name, value.trim()] as const),
    ]);
  const [now, today] = [described(database), described(running)];
  return [...new Set([...today.keys(), ...now.keys()])]
    .filter((name) => (now.get(name) ?? "") !== (today.get(name) ?? ""))
    .map((name) => (today.get(name) ? `${name} = ${today.get(name)}` : `${name} not set`));
}

/**
 * A node's databases as they run, with what somebody typed: one that names a server of this node takes that one's place,
 * the others stand beside them, under another name where theirs is taken.
 */
function joined(observed: readonly DatabaseForm[], typed: readonly DatabaseForm[]): DatabaseForm[] {
  const describes = (database: DatabaseForm, server: DatabaseForm) =>
    database.runs_as !== undefined && database.runs_as === server.runs_as;
  const next = observed.map((server) => typed.find((database) => describes(database, server)) ?? server);
  for (const database of typed) {
    if (next.includes(database)) continue;
    const { runs_as: _elsewhere, ...rest } = database;
    next.push({ ...rest, name: freeName(rest.name, rest.name, next) });
  }
  return next;
}

/**
 * The draft for another node: its databases as they run today take the place of the first form's and of another node's.
 * What somebody typed or changed stays, and without a node everything stays. `running` is what runs on the node,
 * `before` what ran on the node that is left; null where that is not known.
 */
export function draftOnNode(
  draft: Draft,
  nodeId: string | null,
  running: Json | null,
  before: Json | null,
): Draft {
  const { databases } = draft.form;
  const observed = running ? fromScenario(running).form : null;
  const next =
    nodeId === null ? databases : joined(observed?.databases ?? [], typedDatabases(databases, before));
  return {
    nodeId,
    form: {
      ...draft.form,
      databases: next.length > 0 || databases.length === 0 ? next : initialForm().databases,
      reservations: reservationsOnNode(draft.form.reservations, observed?.reservations),
      exclude: undefined,
    },
  };
}

/** What the node says of its kubelet takes the place of what another node said; what somebody typed stays. */
function reservationsOnNode(
  old: PlannerForm["reservations"],
  observed: PlannerForm["reservations"] | undefined,
): PlannerForm["reservations"] {
  const typed = old.from_node ? {} : old;
  return observed?.kubernetes && !typed.kubernetes ? { ...typed, ...observed, from_node: true } : typed;
}

/** What the page starts with: what stands in the address first, so that a reload or a shared link loses no edit. */
export function startingDraft(
  saved: Scenario | null,
  address: { form?: unknown; node?: string },
  observed: Draft | null,
): Draft {
  if (address.form !== undefined)
    return { form: readForm(address.form), nodeId: address.node ?? saved?.node_id ?? null };
  if (saved) return savedDraft(saved).draft;
  if (observed) return observed;
  return { form: readForm(undefined), nodeId: address.node ?? null };
}

/** What a node brings when it is chosen, or the empty form without one; null where what it runs is not known yet. */
export function broughtDraft(nodeId: string | null, running: Json | null): Draft | null {
  const empty: Draft = { form: initialForm(), nodeId: null };
  if (nodeId === null) return empty;
  return running === null ? null : draftOnNode(empty, nodeId, running, null);
}
