import { Alert, VisuallyHidden } from "@mantine/core";
import { useHotkeys } from "@mantine/hooks";
import { useQuery } from "@tanstack/react-query";
import { memo, useCallback, useDeferredValue, useMemo, useRef, useState } from "react";
import { FieldErrors } from "@/api/field-errors";
import { nodeQuery, nodeScenarioQuery } from "@/api/nodes";
import type { PreviewInput } from "@/api/plans";
import { asApiError } from "@/api/problem";
import { useMayPlan } from "@/api/session";
import type { EngineInfo, NodeDetail, PlanPreview, Scenario } from "@/api/types";
import type { ResizePool } from "@/components/memory-map/memory-map";
import { PageHeader } from "@/components/ui/page-header";
import { TextLink } from "@/components/ui/text-link";
import { GIB } from "@/lib/units";
import { Answer } from "./answer/answer";
import { KeepThisPlan } from "./answer/keep-this-plan";
import { CompareCard } from "./compare/compare-card";
import { broughtDraft, type Draft, runningDatabases, sameDraft, savedDraft } from "./draft/draft";
import {
  type ChangeForm,
  inputPaths,
  readForm,
  toScenario,
  withSetting,
  withWorkload,
} from "./draft/planner-form";
import { resizedPool } from "./draft/pool-size";
import { PlanForm } from "./form/plan-form";
import { isDamaged, useAddress } from "./live/use-address";
import { useLivePlan } from "./live/use-live-plan";
import { PlanProblems } from "./plan-problems";
import { PlanView } from "./plan-view";
import classes from "./planner-page.module.css";
import { Toolbar, type ToolbarProps } from "./toolbar/toolbar";
import { useChooseNode, useDraft, useIsDirty } from "./use-draft";

interface PlannerProps {
  engines: readonly EngineInfo[];
  stored: Scenario | null;
  /** The databases of the node that the page was opened for, as they run. */
  running: Record<string, unknown> | null;
}

/** What follows the answer, each part with what it belongs to. */
interface Pictured {
  shown: PlanPreview | null;
  input: PreviewInput;
  form: Draft["form"];
  node: NodeDetail | undefined;
}

export function Planner({ engines, stored, running }: PlannerProps) {
  // The version that the form was read from or last saved as; the server may have a newer one.
  const [base, setBase] = useState(stored);
  // What the form has no input for is taken over from here; saving does not change it.
  const [source, setSource] = useState(stored?.scenario);
  const read = useMemo(() => (base ? savedDraft(base) : null), [base]);
  const { history, change, goBack, goForth, load } = useDraft(read?.draft ?? null, running);
  const draft = history.present;
  const { form, nodeId } = draft;
  const scenario = useMemo(() => toScenario(form, nodeId !== null, source), [form, nodeId, source]);
  const { data: asItRuns } = useQuery({ ...nodeScenarioQuery(nodeId ?? ""), enabled: nodeId !== null });
  const began = useBegan(nodeId, asItRuns);
  const differs = useIsDirty(scenario, nodeId, base);
  // A node that reports other settings meanwhile is no edit: what counts is what it brought when it was chosen.
  const pristine = useMemo(() => broughtDraft(nodeId, began), [nodeId, began]);
  const isDirty = useMemo(
    () => differs && !(base === null && pristine !== null && sameDraft(draft, pristine)),
    [differs, base, draft, pristine],
  );
  const [linkIsDamaged, setLinkDamaged] = useState(() => isDamaged(window.location.hash));
  const address = useAddress(draft, isDirty, load, () => setLinkDamaged(true));
  const mayPlan = useMayPlan();
  const changeForm: ChangeForm = useCallback(
    (of) => change((old) => ({ ...old, form: of(old.form) })),
    [change],
  );
  const chooseNode = useChooseNode(change);
  const changeNode = useCallback((id: string | null) => void chooseNode(id), [chooseNode]);
  const setSetting = useCallback(
    (instance: string, setting: string, value: string) =>
      changeForm((old) => withSetting(old, instance, setting, value)),
    [changeForm],
  );
  const setWorkload = useCallback(
    (instance: string, field: string, value: string) =>
      changeForm((old) => withWorkload(old, instance, field, value)),
    [changeForm],
  );
  const loadVersion = useCallback(
    (version: Scenario) => {
      setBase(version);
      setSource(version.scenario);
      load(savedDraft(version).draft);
    },
    [load],
  );
  const startAnew = useCallback(() => change(() => ({ form: readForm(undefined), nodeId: null })), [change]);
  useHotkeys([
    ["mod+Z", goBack],
    ["mod+shift+Z", goForth],
    ["mod+Y", goForth],
  ]);
  const node = useQuery({ ...nodeQuery(nodeId ?? ""), enabled: nodeId !== null });
  const today = useMemo(() => (asItRuns ? runningDatabases(asItRuns) : null), [asItRuns]);
  const brought = useMemo(() => (began ? runningDatabases(began) : null), [began]);
  const detail: NodeDetail | undefined = nodeId === null ? undefined : node.data;
  const input = useMemo(() => ({ nodeId, scenario }), [nodeId, scenario]);
  const live = useLivePlan(input);
  const { shown, input: answeredInput } = live;
  const [comparing, setComparing] = useState(false);
  const compare = useCallback(() => setComparing((before) => !before), []);
  const problem = useMemo(() => (live.error ? asApiError(live.error) : null), [live.error]);
  const errors = useMemo(() => new FieldErrors(problem?.fieldErrors ?? []), [problem]);
  const elsewhere = useMemo(
    () => errors.without(inputPaths(form.databases, form.tenants.length)),
    [errors, form.databases, form.tenants.length],
  );
  const newest = useRef({ draft, scenario, shown });
  newest.current = { draft, scenario, shown };
  const current = useCallback(() => newest.current, []);
  const resizePool: ResizePool = useCallback(
    (pageBytes, delta) => {
      const { shown: seen } = newest.current;
      if (seen) changeForm((old) => resizedPool(old, seen.plan, engines, pageBytes, delta) ?? old);
    },
    [engines, changeForm],
  );
  const pictured: Pictured = useMemo(
    () => ({ shown, input: answeredInput, form, node: detail }),
    [shown, answeredInput, form, detail],
  );
  // The pictures may take longer to draw than the next key: React draws them when it has time, and starts anew for a newer.
  const late = useDeferredValue(pictured);
  const isLate = live.isStale || late.shown !== shown;
  const hasPlan = shown !== null;
  return (
    <>
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
        onLoad={loadVersion}
        onNew={startAnew}
        isComparing={comparing}
        onCompare={compare}
      />
      {(read?.notShown.length ?? 0) > 0 && (
        <Alert color="yellow" variant="light" mb="md" title="This scenario holds more than the form shows">
          Saving from here would drop: {read?.notShown.join(", ")}.
        </Alert>
      )}
      {linkIsDamaged && (
        <Alert
          color="yellow"
          variant="light"
          mb="md"
          title="The draft in this link cannot be read"
          withCloseButton
          closeButtonLabel="Close"
          onClose={() => setLinkDamaged(false)}
        >
          The link was cut or changed on its way: ask for it again. The form does not hold what it held.
        </Alert>
      )}
      <VisuallyHidden role="status">
        {late.shown && !isLate && !problem ? `The plan is up to date: ${late.shown.plan.headline}` : ""}
      </VisuallyHidden>
      <p className={classes.notKept}>
        A plan that is not kept. Keep it, and it has a digest, its files and a sheet to sign.
      </p>
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
            brought={brought}
            onForm={changeForm}
            onNode={changeNode}
          />
        </div>
        <div className={classes.right} aria-busy={live.isWorking}>
          <div className={classes.pinned}>
            <PlanProblems problem={problem} unplaced={elsewhere} hasPlan={hasPlan} onRetry={live.retry} />
            {shown && (
              <Answer
                shown={shown}
                isStale={live.isStale}
                onUseFit={setSetting}
                onAnswer={setWorkload}
                next={
                  mayPlan ? (
                    <KeepThisPlan
                      current={current}
                      fits={shown.plan.feasible}
                      hasProblem={problem !== null}
                    />
                  ) : null
                }
              />
            )}
          </div>
          <div
            className={classes.pictures}
            data-testid="plan-pictures"
            data-stale={isLate && late.shown !== null}
          >
            {comparing && late.shown && (
              <CompareCard
                shown={late.shown}
                base={base}
                isDirty={isDirty}
                nodeId={late.input.nodeId}
                inForce={late.node?.plan_in_force ?? null}
              />
            )}
            <Pictures late={late} engines={engines} hasProblem={problem !== null} onResizePool={resizePool} />
          </div>
        </div>
      </div>
    </>
  );
}

/** What a node ran when this page first asked for it. */
function useBegan(nodeId: string | null, asItRuns: Record<string, unknown> | undefined) {
  const [first] = useState(() => new Map<string, Record<string, unknown>>());
  if (nodeId === null) return null;
  if (asItRuns && !first.has(nodeId)) first.set(nodeId, asItRuns);
  return first.get(nodeId) ?? null;
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

interface PicturesProps {
  late: Pictured;
  engines: readonly EngineInfo[];
  hasProblem: boolean;
  onResizePool: ResizePool;
}

const Pictures = memo(function Pictures({ late, engines, hasProblem, onResizePool }: PicturesProps) {
  const { shown, form } = late;
  return (
    <PlanView
      shown={shown}
      hasProblem={hasProblem}
      databases={form.databases}
      canResizePool={(pageBytes) =>
        shown !== null && resizedPool(form, shown.plan, engines, pageBytes, GIB) !== null
      }
      onResizePool={onResizePool}
    />
  );
});
