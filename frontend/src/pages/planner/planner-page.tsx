import { Alert, VisuallyHidden } from "@mantine/core";
import { useHotkeys } from "@mantine/hooks";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { memo, useCallback, useDeferredValue, useEffect, useMemo, useReducer, useRef, useState } from "react";
import { enginesQuery } from "@/api/engines";
import { nodeQuery, nodeScenarioQuery } from "@/api/nodes";
import type { PreviewInput } from "@/api/plans";
import { asApiError } from "@/api/problem";
import { scenarioQuery } from "@/api/scenarios";
import { useMayPlan } from "@/api/session";
import type { EngineInfo, NodeDetail, PlanPreview, Scenario } from "@/api/types";
import type { ResizePool } from "@/components/memory-map/memory-map";
import { PageHeader } from "@/components/ui/page-header";
import { PageSkeleton } from "@/components/ui/skeletons";
import { ErrorState } from "@/components/ui/states";
import { TextLink } from "@/components/ui/text-link";
import { FieldErrors } from "@/lib/field-errors";
import { GIB } from "@/lib/units";
import { CompareCard } from "./compare/compare-card";
import {
  type Draft,
  type DraftHistory,
  draftOnNode,
  edit,
  redo,
  sameDraft,
  savedDraft,
  startHistory,
  startingDraft,
  undo,
} from "./form/draft";
import { PlanForm } from "./form/plan-form";
import { inputPaths, type PlannerForm, readForm, toScenario } from "./form/planner-form";
import { resizedPool, settingBytes } from "./form/pool-size";
import classes from "./planner-page.module.css";
import { Answer } from "./result/answer";
import { PlanProblems, PlanResult } from "./result/plan-result";
import { PrintSheet } from "./result/print-sheet";
import { Toolbar } from "./toolbar";
import { useLivePlan } from "./use-live-plan";

/** Databases and other workloads in, a plan out. Waits for what the form starts from, then hands over. */
export function PlannerPage() {
  const search = useSearch({ from: "/app/planner" });
  const engines = useQuery(enginesQuery());
  const scenario = useQuery({ ...scenarioQuery(search.saved ?? ""), enabled: search.saved !== undefined });
  // A node that is opened for planning brings its databases as they run; what stands in the address goes first.
  const [startNode] = useState(
    search.saved === undefined && search.form === undefined ? search.node : undefined,
  );
  const running = useQuery({ ...nodeScenarioQuery(startNode ?? ""), enabled: startNode !== undefined });
  const failed = [engines, scenario].find((query) => query.isError && query.data === undefined);
  if (failed) return <ErrorState error={failed.error} onRetry={() => void failed.refetch()} />;
  if (!engines.data || (search.saved !== undefined && !scenario.data)) return <PageSkeleton />;
  if (startNode !== undefined && running.isPending) return <PageSkeleton />;
  return (
    <Planner
      // Another scenario is another form; another version of the same one is not, or edits would be lost.
      key={search.saved ?? "new"}
      engines={engines.data.items}
      stored={search.saved !== undefined ? (scenario.data ?? null) : null}
      running={running.data ?? null}
    />
  );
}

type HistoryAction =
  | { kind: "edit"; draft: Draft }
  | { kind: "undo" }
  | { kind: "redo" }
  | { kind: "load"; draft: Draft };

function step(history: DraftHistory, action: HistoryAction): DraftHistory {
  if (action.kind === "undo") return undo(history);
  if (action.kind === "redo") return redo(history);
  if (action.kind === "load") return startHistory(action.draft);
  return edit(history, action.draft, performance.now());
}

/** The draft with its history. What is not saved stands in the address, so that reload, back and a link keep it. */
function useDraft(base: Draft | null, running: Record<string, unknown> | null) {
  const search = useSearch({ from: "/app/planner" });
  const navigate = useNavigate({ from: "/planner" });
  const [history, dispatch] = useReducer(step, null, () =>
    startHistory(
      base && search.form === undefined
        ? base
        : startingDraft(
            null,
            { form: search.form, node: search.node ?? base?.nodeId ?? undefined },
            search.node && running
              ? draftOnNode({ form: readForm(undefined), nodeId: null }, search.node, running)
              : null,
          ),
    ),
  );
  const { form, nodeId } = history.present;
  const isDirty = base === null || !sameDraft(history.present, base);
  useEffect(() => {
    void navigate({
      search: (old) => ({
        ...old,
        node: isDirty ? (nodeId ?? undefined) : undefined,
        form: isDirty ? form : undefined,
      }),
      replace: true,
      resetScroll: false,
    });
  }, [form, nodeId, isDirty, navigate]);
  return { history, dispatch, isDirty };
}

interface PlannerProps {
  engines: readonly EngineInfo[];
  stored: Scenario | null;
  /** The databases of the node that the page was opened for, as they run. */
  running: Record<string, unknown> | null;
}

/** Chooses a node: its databases are asked for first, so that the form changes once. */
function useChooseNode(draft: Draft, setDraft: (draft: Draft) => void) {
  const queries = useQueryClient();
  const newest = useRef<{ draft: Draft; id: string | null }>({ draft, id: draft.nodeId });
  newest.current.draft = draft;
  return async (id: string | null) => {
    newest.current.id = id;
    // Without an answer the node is chosen all the same: why it cannot be planned is said with the plan.
    const running = id === null ? null : await queries.fetchQuery(nodeScenarioQuery(id)).catch(() => null);
    if (newest.current.id === id) setDraft(draftOnNode(newest.current.draft, id, running));
  };
}

function Planner({ engines, stored, running }: PlannerProps) {
  // The version that the form was read from or last saved as; the server may have a newer one.
  const [base, setBase] = useState(stored);
  const read = useMemo(() => (base ? savedDraft(base) : null), [base]);
  const { history, dispatch, isDirty } = useDraft(read?.draft ?? null, running);
  const { form, nodeId } = history.present;
  const mayPlan = useMayPlan();
  const setDraft = (draft: Draft) => dispatch({ kind: "edit", draft });
  const setForm = (changed: PlannerForm) => setDraft({ form: changed, nodeId });
  const chooseNode = useChooseNode(history.present, setDraft);
  useHotkeys([
    ["mod+Z", () => dispatch({ kind: "undo" })],
    ["mod+shift+Z", () => dispatch({ kind: "redo" })],
    ["mod+Y", () => dispatch({ kind: "redo" })],
  ]);
  const node = useQuery({ ...nodeQuery(nodeId ?? ""), enabled: nodeId !== null });
  const scenario = useMemo(() => toScenario(form, nodeId !== null), [form, nodeId]);
  const input = useMemo(() => ({ nodeId, scenario }), [nodeId, scenario]);
  const live = useLivePlan(input);
  const [comparing, setComparing] = useState(false);
  const problem = useMemo(() => (live.error ? asApiError(live.error) : null), [live.error]);
  const errors = useMemo(() => new FieldErrors(problem?.fieldErrors ?? []), [problem]);
  const elsewhere = errors.without(inputPaths(form.databases, form.tenants.length));
  const detail: NodeDetail | undefined = nodeId === null ? undefined : node.data;
  const plan = live.shown?.plan ?? null;
  const now: Late = useMemo(
    () => ({
      shown: live.shown,
      input: live.input,
      isStale: live.isStale,
      hasProblem: live.error !== null,
      form,
      engines,
      node: detail,
      nodeId,
      base,
      isDirty,
      comparing,
    }),
    [
      live.shown,
      live.input,
      live.isStale,
      live.error,
      form,
      engines,
      detail,
      nodeId,
      base,
      isDirty,
      comparing,
    ],
  );
  const late = useDeferredValue(now);
  // What the memoised parts call: the newest of each, so that a change of one does not draw the others again.
  const newest = useRef({ form, plan, setForm, chooseNode });
  newest.current = { form, plan, setForm, chooseNode };
  const changeForm = useCallback((change: PlannerForm | ((newest: PlannerForm) => PlannerForm)) => {
    const { form: old, setForm: set } = newest.current;
    set(typeof change === "function" ? change(old) : change);
  }, []);
  const changeNode = useCallback((id: string | null) => void newest.current.chooseNode(id), []);
  const resizePool: ResizePool = useCallback(
    (pageBytes, delta) => {
      const current = newest.current;
      const resized = current.plan && resizedPool(current.form, current.plan, engines, pageBytes, delta);
      if (resized) current.setForm(resized);
    },
    [engines],
  );
  return (
    <>
      <div className={classes.screen}>
        <PageHeader
          title={base ? base.name : "Planner"}
          crumbs={
            base
              ? [
                  <TextLink key="planner" to="/planner" search={{}} reloadDocument={false}>
                    Planner
                  </TextLink>,
                ]
              : undefined
          }
          actions={
            <Toolbar
              base={base}
              stored={stored}
              isDirty={isDirty}
              mayPlan={mayPlan}
              draft={history.present}
              scenario={scenario}
              canUndo={history.past.length > 0}
              canRedo={history.future.length > 0}
              onUndo={() => dispatch({ kind: "undo" })}
              onRedo={() => dispatch({ kind: "redo" })}
              onSaved={setBase}
              onLoad={(scenarioNow) => {
                setBase(scenarioNow);
                dispatch({ kind: "load", draft: savedDraft(scenarioNow).draft });
              }}
              isComparing={comparing}
              onCompare={() => setComparing(!comparing)}
            />
          }
        />
        {(read?.notShown.length ?? 0) > 0 && (
          <Alert color="yellow" variant="light" mb="md" title="This scenario holds more than the form shows">
            Saving from here would drop: {read?.notShown.join(", ")}.
          </Alert>
        )}
        <VisuallyHidden role="status">
          {plan && !live.isStale && !problem ? `The plan is up to date: ${plan.headline}` : ""}
        </VisuallyHidden>
        <div className={classes.layout}>
          <div className={classes.form} id="planner-form">
            <PlanForm
              engines={engines}
              form={form}
              nodeId={nodeId}
              node={detail}
              errors={errors}
              plan={late.shown?.plan ?? null}
              onForm={changeForm}
              onNode={changeNode}
            />
          </div>
          <div className={classes.right} aria-busy={live.isWorking}>
            <div className={classes.pinned}>
              <PlanProblems
                problem={problem}
                unplaced={elsewhere}
                hasPlan={plan !== null}
                onRetry={live.retry}
              />
              {plan && (
                <Answer
                  plan={plan}
                  isStale={live.isStale}
                  onUseFit={(instance, setting, value) =>
                    setForm(withSetting(form, instance, setting, value))
                  }
                />
              )}
            </div>
            <Pictures {...late} onResizePool={resizePool} />
          </div>
        </div>
      </div>
      <Paper {...late} />
    </>
  );
}

/** What follows the answer: drawn after the answer is on screen, and given up for a newer one. */
interface Late {
  shown: PlanPreview | null;
  input: PreviewInput;
  isStale: boolean;
  hasProblem: boolean;
  form: PlannerForm;
  engines: readonly EngineInfo[];
  node: NodeDetail | undefined;
  nodeId: string | null;
  base: Scenario | null;
  isDirty: boolean;
  comparing: boolean;
}

const Pictures = memo(function Pictures({ onResizePool, ...late }: Late & { onResizePool: ResizePool }) {
  const plan = late.shown?.plan ?? null;
  return (
    <div className={classes.pictures}>
      {late.comparing && plan && (
        <CompareCard
          plan={plan}
          base={late.base}
          isDirty={late.isDirty}
          nodeId={late.nodeId}
          inForce={late.node?.plan_in_force ?? null}
        />
      )}
      <PlanResult
        shown={late.shown}
        isStale={late.isStale}
        hasProblem={late.hasProblem}
        node={late.node}
        input={late.input}
        tables={tablesGiven(late.form)}
        workingSets={workingSetsGiven(late.form)}
        canResizePool={(pageBytes) =>
          plan !== null && resizedPool(late.form, plan, late.engines, pageBytes, GIB) !== null
        }
        onResizePool={onResizePool}
      />
    </div>
  );
});

const Paper = memo(function Paper(late: Late) {
  const { shown, base, isDirty } = late;
  if (!shown?.plan) return null;
  return (
    <PrintSheet
      plan={shown.plan}
      artifacts={shown.artifacts}
      title={base?.name ?? "Unsaved scenario"}
      version={base && !isDirty ? base.version : null}
      node={late.node}
      isStale={late.isStale}
    />
  );
});

/** The databases that a table of throughput was pasted for. */
function tablesGiven(form: PlannerForm): string[] {
  return form.databases
    .filter(({ workload }) => workload?.benefit_table?.trim())
    .map(({ name }) => name.trim());
}

/** Working sets in bytes by database, where they are given as a size. */
function workingSetsGiven(form: PlannerForm): Map<string, number> {
  return new Map(
    form.databases.flatMap(({ name, workload }) => {
      const bytes = settingBytes(workload?.working_set, 1);
      return bytes ? [[name.trim(), bytes] as const] : [];
    }),
  );
}

function withSetting(form: PlannerForm, instance: string, setting: string, value: string): PlannerForm {
  return {
    ...form,
    databases: form.databases.map((database) =>
      database.name.trim() === instance
        ? { ...database, settings: { ...database.settings, [setting]: value } }
        : database,
    ),
  };
}
