import { useQueryClient } from "@tanstack/react-query";
import { useRouter, useSearch } from "@tanstack/react-router";
import { useCallback, useMemo, useReducer, useRef } from "react";
import { nodeScenarioQuery } from "@/api/nodes";
import type { Scenario } from "@/api/types";
import {
  type Draft,
  type DraftHistory,
  draftOnNode,
  edit,
  redo,
  savedDraft,
  startHistory,
  startingDraft,
  undo,
} from "./draft/draft";
import { readForm, toScenario } from "./draft/planner-form";
import { formInFragment } from "./live/use-address";

/** What leads from one draft to the next: of the newest draft, as a part of the page may not have been drawn since. */
type DraftChange = (newest: Draft) => Draft;

type HistoryAction =
  | { kind: "edit"; change: DraftChange; atMs: number }
  | { kind: "undo" }
  | { kind: "redo" }
  | { kind: "load"; draft: Draft };

function step(history: DraftHistory, action: HistoryAction): DraftHistory {
  if (action.kind === "undo") return undo(history);
  if (action.kind === "redo") return redo(history);
  if (action.kind === "load") return startHistory(action.draft);
  return edit(history, action.change(history.present), action.atMs);
}

/** The draft with its history: from the address, else from what is saved, else as the node runs. */
export function useDraft(saved: Draft | null, running: Record<string, unknown> | null) {
  const { form: oldForm, node } = useSearch({ from: "/app/planner" });
  const router = useRouter();
  const start = useRef<DraftHistory | null>(null);
  if (start.current === null) {
    const form = formInFragment(router.latestLocation.hash) ?? oldForm;
    const observed =
      node && running ? draftOnNode({ form: readForm(undefined), nodeId: null }, node, running, null) : null;
    const draft =
      saved && form === undefined
        ? saved
        : startingDraft(null, { form, node: node ?? saved?.nodeId ?? undefined }, observed);
    start.current = startHistory(draft);
  }
  const [history, dispatch] = useReducer(step, start.current);
  // None of these ever changes: a part of the page is drawn again for what it shows, not for what it calls.
  const change = useCallback(
    (of: DraftChange) => dispatch({ kind: "edit", change: of, atMs: performance.now() }),
    [],
  );
  const goBack = useCallback(() => dispatch({ kind: "undo" }), []);
  const goForth = useCallback(() => dispatch({ kind: "redo" }), []);
  const load = useCallback((draft: Draft) => dispatch({ kind: "load", draft }), []);
  return { history, change, goBack, goForth, load };
}

/** Chooses a node: its databases are asked for first, so that the form changes once. */
export function useChooseNode(changeDraft: (change: DraftChange) => void) {
  const queries = useQueryClient();
  const newest = useRef<string | null>(null);
  return useCallback(
    async (id: string | null) => {
      newest.current = id;
      // Without an answer the node is chosen all the same: why it cannot be planned is said with the plan.
      const running = id === null ? null : await queries.fetchQuery(nodeScenarioQuery(id)).catch(() => null);
      if (newest.current !== id) return;
      changeDraft((draft) => {
        const left =
          draft.nodeId === null ? null : queries.getQueryData(nodeScenarioQuery(draft.nodeId).queryKey);
        return draftOnNode(draft, id, running, left ?? null);
      });
    },
    [queries, changeDraft],
  );
}

/** Whether saving would change something: of the documents, as two forms may say the same. */
export function useIsDirty(scenario: object, nodeId: string | null, base: Scenario | null): boolean {
  const asSaved = useMemo(() => {
    if (base === null) return null;
    const { draft } = savedDraft(base);
    return JSON.stringify(toScenario(draft.form, draft.nodeId !== null, base.scenario));
  }, [base]);
  return useMemo(
    () => base === null || base.node_id !== nodeId || JSON.stringify(scenario) !== asSaved,
    [base, nodeId, scenario, asSaved],
  );
}
