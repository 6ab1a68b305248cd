import "@/theme/mantine-pages.css";
import { Alert, VisuallyHidden } from "@mantine/core";
import { useHotkeys } from "@mantine/hooks";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useSearch } from "@tanstack/react-router";
import { memo, startTransition, useCallback, useEffect, useMemo, useReducer, useRef, useState } from "react";
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
  runningDatabases,
  savedDraft,
  startHistory,
  startingDraft,
  undo,
} from "./form/draft";
import { PlanForm } from "./form/plan-form";
import { type ChangeForm, inputPaths, type PlannerForm, readForm, toScenario } from "./form/planner-form";
import { resizedPool, settingBytes } from "./form/pool-size";
import classes from "./planner-page.module.css";
import { Answer, type UseFit } from "./result/answer";
import { InTurn } from "./result/in-turn";
import { OutOfDate } from "./result/out-of-date";
import { PlanProblems, PlanResult } from "./result/plan-result";
import { PrintSheet } from "./result/print-sheet";
import { Toolbar, type ToolbarProps } from "./toolbar";
import { useAddress } from "./use-address";
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

/** The draft with its history, from the address or from what is saved. */
function useDraft(base: Draft | null, running: Record<string, unknown> | null) {
  const search = useSearch({ from: "/app/planner" });
  return useReducer(step, null, () =>
    startHistory(
      base && search.form === undefined
        ? base
        : startingDraft(
            null,
            { form: search.form, node: search.node ?? base?.nodeId ?? undefined },
            search.node && running
              ? draftOnNode({ form: readForm(undefined), nodeId: null }, search.node, running, null)
              : null,
          ),
    ),
  );
}

interface PlannerProps {
  engines: readonly EngineInfo[];
  stored: Scenario | null;
  /** The databases of the node that the page was opened for, as they run. */
  running: Record<string, unknown> | null;
}

/** Chooses a node: its databases are asked for first, so that the form changes once. */
function useChooseNode(changeDraft: (change: DraftChange) => void) {
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
function useIsDirty(scenario: object, nodeId: string | null, base: Scenario | null): boolean {
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

function Planner({ engines, stored, running }: PlannerProps) {
  // The version that the form was read from or last saved as; the server may have a newer one.
  const [base, setBase] = useState(stored);
  // What the form has no input for is taken over from here; saving does not change it.
  const [source, setSource] = useState(stored?.scenario);
  const read = useMemo(() => (base ? savedDraft(base) : null), [base]);
  const [history, dispatch] = useDraft(read?.draft ?? null, running);
  const draft = history.present;
  const { form, nodeId } = draft;
  const scenario = useMemo(() => toScenario(form, nodeId !== null, source), [form, nodeId, source]);
  const isDirty = useIsDirty(scenario, nodeId, base);
  const address = useAddress(draft, isDirty);
  const mayPlan = useMayPlan();
  // None of these ever changes: a part of the page is drawn again for what it shows, not for what it calls.
  const changeDraft = useCallback(
    (change: DraftChange) => dispatch({ kind: "edit", change, atMs: performance.now() }),
    [dispatch],
  );
  const changeForm: ChangeForm = useCallback(
    (change) => changeDraft((old) => ({ ...old, form: change(old.form) })),
    [changeDraft],
  );
  const chooseNode = useChooseNode(changeDraft);
  const changeNode = useCallback((id: string | null) => void chooseNode(id), [chooseNode]);
  const useFit: UseFit = useCallback(
    (instance, setting, value) => changeForm((old) => withSetting(old, instance, setting, value)),
    [changeForm],
  );
  const goBack = useCallback(() => dispatch({ kind: "undo" }), [dispatch]);
  const goForth = useCallback(() => dispatch({ kind: "redo" }), [dispatch]);
  const load = useCallback(
    (version: Scenario) => {
      setBase(version);
      setSource(version.scenario);
      dispatch({ kind: "load", draft: savedDraft(version).draft });
    },
    [dispatch],
  );
  const startAnew = useCallback(
    () => changeDraft(() => ({ form: readForm(undefined), nodeId: null })),
    [changeDraft],
  );
  useHotkeys([
    ["mod+Z", goBack],
    ["mod+shift+Z", goForth],
    ["mod+Y", goForth],
  ]);
  const node = useQuery({ ...nodeQuery(nodeId ?? ""), enabled: nodeId !== null });
  const { data: asItRuns } = useQuery({ ...nodeScenarioQuery(nodeId ?? ""), enabled: nodeId !== null });
  const today = useMemo(() => (asItRuns ? runningDatabases(asItRuns) : null), [asItRuns]);
  const detail: NodeDetail | undefined = nodeId === null ? undefined : node.data;
  const input = useMemo(() => ({ nodeId, scenario }), [nodeId, scenario]);
  const live = useLivePlan(input);
  const plan = live.shown?.plan ?? null;
  const [comparing, setComparing] = useState(false);
  const compare = useCallback(() => setComparing((before) => !before), []);
  const problem = useMemo(() => (live.error ? asApiError(live.error) : null), [live.error]);
  const errors = useMemo(() => new FieldErrors(problem?.fieldErrors ?? []), [problem]);
  const elsewhere = useMemo(
    () => errors.without(inputPaths(form.databases, form.tenants.length)),
    [errors, form.databases, form.tenants.length],
  );
  const newest = useRef({ draft, scenario, plan });
  newest.current = { draft, scenario, plan };
  const current = useCallback(() => newest.current, []);
  const resizePool: ResizePool = useCallback(
    (pageBytes, delta) => {
      const { plan: shown } = newest.current;
      if (shown) changeForm((old) => resizedPool(old, shown, engines, pageBytes, delta) ?? old);
    },
    [engines, changeForm],
  );
  const { shown, input: answeredInput } = live;
  const pictured: Pictured = useMemo(
    () => ({ shown, input: answeredInput, form, node: detail, nodeId }),
    [shown, answeredInput, form, detail, nodeId],
  );
  const late = useSettled(pictured);
  const [drawn, setDrawn] = useState<PlanPreview | null>(null);
  const isLate = live.isStale || drawn !== shown;
  return (
    <>
      <div className={classes.screen}>
        <Head
          base={base}
          stored={stored}
          isDirty={isDirty}
          mayPlan={mayPlan}
          current={current}
          address={address}
          canUndo={history.past.length > 0}
          canRedo={history.future.length > 0}
          onUndo={goBack}
          onRedo={goForth}
          onSaved={setBase}
          onLoad={load}
          onNew={startAnew}
          isComparing={comparing}
          onCompare={compare}
          fits={plan?.feasible ?? false}
        />
        {(read?.notShown.length ?? 0) > 0 && (
          <Alert color="yellow" variant="light" mb="md" title="This scenario holds more than the form shows">
            Saving from here would drop: {read?.notShown.join(", ")}.
          </Alert>
        )}
        <VisuallyHidden role="status">
          {late.shown && !isLate && !problem ? `The plan is up to date: ${late.shown.plan.headline}` : ""}
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
              running={today}
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
                <Answer plan={plan} verdict={live.shown?.verdict} isStale={live.isStale} onUseFit={useFit} />
              )}
            </div>
            <div
              className={classes.pictures}
              data-testid="plan-pictures"
              data-stale={isLate && late.shown !== null}
            >
              {comparing && late.shown && (
                <CompareCard
                  plan={late.shown.plan}
                  base={base}
                  isDirty={isDirty}
                  nodeId={late.nodeId}
                  inForce={late.node?.plan_in_force ?? null}
                />
              )}
              <OutOfDate value={isLate}>
                <Pictures
                  late={late}
                  engines={engines}
                  hasProblem={problem !== null}
                  onResizePool={resizePool}
                  onDrawn={setDrawn}
                />
              </OutOfDate>
            </div>
          </div>
        </div>
      </div>
      <OutOfDate value={isLate}>
        <Paper late={late} base={base} isDirty={isDirty} />
      </OutOfDate>
    </>
  );
}

const Head = memo(function Head(props: ToolbarProps) {
  const { base } = props;
  return (
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
      actions={<Toolbar {...props} />}
    />
  );
});

/** What follows the answer, each part with what it belongs to. */
interface Pictured {
  shown: PlanPreview | null;
  input: PreviewInput;
  form: PlannerForm;
  node: NodeDetail | undefined;
  nodeId: string | null;
}

/** As long as the edits follow each other faster than this, only the answer follows them. A key per step is slower. */
const SETTLED_AFTER_MS = 250;

/**
 * The newest that the pictures show. They take longer to draw than the answer may take, so they wait for a pause in the
 * edits; what was never drawn, and another node, do not wait.
 */
function useSettled(now: Pictured): Pictured {
  const [settled, settle] = useState(now);
  const isPart = settled.shown !== null && now.shown !== null && settled.nodeId === now.nodeId;
  useEffect(() => {
    if (now === settled) return;
    const timer = setTimeout(() => startTransition(() => settle(now)), isPart ? SETTLED_AFTER_MS : 0);
    return () => clearTimeout(timer);
  }, [now, settled, isPart]);
  return settled.nodeId === now.nodeId ? settled : now;
}

interface PicturesProps {
  late: Pictured;
  engines: readonly EngineInfo[];
  hasProblem: boolean;
  onResizePool: ResizePool;
  onDrawn: (shown: PlanPreview) => void;
}

const Pictures = memo(function Pictures(props: PicturesProps) {
  const { late, engines, hasProblem, onResizePool, onDrawn } = props;
  const plan = late.shown?.plan ?? null;
  return (
    <PlanResult
      shown={late.shown}
      hasProblem={hasProblem}
      node={late.node}
      input={late.input}
      tables={tablesGiven(late.form)}
      workingSets={workingSetsGiven(late.form)}
      canResizePool={(pageBytes) =>
        plan !== null && resizedPool(late.form, plan, engines, pageBytes, GIB) !== null
      }
      onResizePool={onResizePool}
      onDrawn={onDrawn}
    />
  );
});

interface PaperProps {
  late: Pictured;
  base: Scenario | null;
  isDirty: boolean;
}

/** What is printed. */
const Paper = memo(function Paper({ late, base, isDirty }: PaperProps) {
  if (!late.shown) return null;
  return (
    <InTurn>
      <PrintSheet
        shown={late.shown}
        input={late.input}
        title={base?.name ?? "Unsaved scenario"}
        version={base && !isDirty ? base.version : null}
        node={late.node}
      />
    </InTurn>
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
