import { Alert, Button } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useEffect, useMemo, useState } from "react";
import { enginesQuery } from "@/api/engines";
import { nodesQuery } from "@/api/nodes";
import { planPreviewQuery } from "@/api/plans";
import { asApiError } from "@/api/problem";
import { scenarioQuery } from "@/api/scenarios";
import type { EngineInfo, NodeSummary, Scenario } from "@/api/types";
import { PlusIcon } from "@/components/ui/icons";
import { PageHeader } from "@/components/ui/page-header";
import { PageSkeleton } from "@/components/ui/skeletons";
import { ErrorState } from "@/components/ui/states";
import { TextLink } from "@/components/ui/text-link";
import { FieldErrors, inputPaths } from "@/lib/field-errors";
import { GIB, MIB } from "@/lib/units";
import { DatabaseInputs } from "./form/database-inputs";
import { NodeInputs, PolicyInputs } from "./form/node-inputs";
import {
  fromScenario,
  newDatabase,
  newTenant,
  type PlannerForm,
  readForm,
  toScenario,
} from "./form/planner-form";
import classes from "./form/planner-form.module.css";
import { SavedScenarios } from "./form/saved-scenarios";
import { TenantInputs } from "./form/tenant-inputs";
import { PlanResult } from "./result/plan-result";

const PREVIEW_DELAY_MS = 350;
const HUGE_PAGE_SIZES: Record<string, readonly number[]> = {
  x86_64: [2 * MIB, GIB],
  aarch64: [64 * 1024, 2 * MIB, 32 * MIB, GIB],
  ppc64le: [2 * MIB, GIB],
  riscv64: [2 * MIB, GIB],
  s390x: [MIB, 2 * GIB],
};

/** Databases and tenants in, a plan out. Waits for what the form needs, then hands over. */
export function PlannerPage() {
  const { saved } = useSearch({ from: "/app/planner" });
  const engines = useQuery(enginesQuery());
  const nodes = useInfiniteQuery(nodesQuery(""));
  const scenario = useQuery({ ...scenarioQuery(saved ?? ""), enabled: saved !== undefined });
  const failed = [engines, nodes, scenario].find((query) => query.isError && query.data === undefined);
  if (failed) return <ErrorState error={failed.error} onRetry={() => void failed.refetch()} />;
  if (!engines.data || !nodes.data || (saved !== undefined && !scenario.data)) return <PageSkeleton />;
  return (
    <Planner
      key={saved ? `${saved}:${scenario.data?.version}` : "new"}
      engines={engines.data.items}
      nodes={nodes.data.pages.flatMap((page) => page.items)}
      open={saved !== undefined ? (scenario.data ?? null) : null}
    />
  );
}

interface PlannerProps {
  engines: readonly EngineInfo[];
  nodes: readonly NodeSummary[];
  open: Scenario | null;
}

/** The form's state: it starts from the address or the saved scenario and writes itself back to the address. */
function usePlannerForm(open: Scenario | null) {
  const search = useSearch({ from: "/app/planner" });
  const navigate = useNavigate({ from: "/planner" });
  const stored = useMemo(() => (open ? fromScenario(open.scenario) : null), [open]);
  const [form, setForm] = useState<PlannerForm>(() => stored?.form ?? readForm(search.form));
  const [nodeId, setNodeId] = useState<string | null>(open ? open.node_id : (search.node ?? null));
  const [settled] = useDebouncedValue(form, PREVIEW_DELAY_MS);
  useEffect(() => {
    void navigate({
      search: (old) => ({ ...old, node: nodeId ?? undefined, form: open ? undefined : settled }),
      replace: true,
    });
  }, [settled, nodeId, open, navigate]);
  return { form, setForm, nodeId, setNodeId, settled, notShown: stored?.notShown ?? [] };
}

function Planner({ engines, nodes, open }: PlannerProps) {
  const navigate = useNavigate({ from: "/planner" });
  const { form, setForm, nodeId, setNodeId, settled, notShown } = usePlannerForm(open);
  const scenario = useMemo(() => toScenario(settled, nodeId !== null), [settled, nodeId]);
  const preview = useQuery(planPreviewQuery({ nodeId, scenario }));
  const problem = preview.isError ? asApiError(preview.error) : null;
  const errors = new FieldErrors(problem?.fieldErrors ?? []);
  const node = nodes.find(({ id }) => id === nodeId);
  const arch = node?.architecture ?? (form.node.arch || "x86_64");
  const sizes = node ? node.pools.map((pool) => pool.page_bytes) : [];
  const hugePageSizes = sizes.length > 0 ? sizes : (HUGE_PAGE_SIZES[arch] ?? [2 * MIB, GIB]);
  const elsewhere = errors.without(inputPaths(form.databases, form.tenants.length));
  return (
    <>
      <PageHeader
        title={open ? open.name : "Planner"}
        crumbs={
          open
            ? [
                <TextLink key="planner" to="/planner" search={{}}>
                  Planner
                </TextLink>,
              ]
            : undefined
        }
        actions={
          <SavedScenarios
            open={open}
            nodeId={nodeId}
            scenario={() => toScenario(form, nodeId !== null)}
            onOpen={(id) => void navigate({ search: { saved: id } })}
            onSaved={(saved) => void navigate({ search: { saved: saved.id } })}
            onDeleted={() => void navigate({ search: {} })}
          />
        }
      />
      {notShown.length > 0 && (
        <Alert color="yellow" variant="light" mb="md" title="This scenario holds more than the form shows">
          Saving from here would drop: {notShown.join(", ")}.
        </Alert>
      )}
      <div className={classes.layout}>
        <div className={classes.inputs}>
          <DatabaseGroup
            form={form}
            setForm={setForm}
            engines={engines}
            errors={errors}
            hugePageSizes={hugePageSizes}
            numaNodes={node?.numa_node_count ?? 1}
          />
          <NodeInputs
            nodes={nodes}
            nodeId={nodeId}
            form={form}
            errors={errors}
            onNode={setNodeId}
            onChange={setForm}
          />
          <TenantGroup form={form} setForm={setForm} errors={errors} numaNodes={node?.numa_node_count ?? 1} />
          <PolicyInputs form={form} errors={errors} onChange={setForm} />
        </div>
        <PlanResult
          preview={preview}
          problem={problem}
          unplaced={elsewhere}
          tables={tablesGiven(settled)}
          nodeId={nodeId}
          isWaiting={settled !== form}
        />
      </div>
    </>
  );
}

/** The databases that a table of throughput was pasted for. */
function tablesGiven(form: PlannerForm): string[] {
  return form.databases
    .filter(({ workload }) => workload?.benefit_table?.trim())
    .map(({ name }) => name.trim());
}

interface GroupProps {
  numaNodes: number;
  form: PlannerForm;
  setForm: (form: PlannerForm) => void;
  errors: FieldErrors;
}

function replaceAt<T>(items: readonly T[], index: number, item: T): T[] {
  return items.map((other, position) => (position === index ? item : other));
}

function DatabaseGroup(
  props: GroupProps & { engines: readonly EngineInfo[]; hugePageSizes: readonly number[] },
) {
  const { form, setForm, engines, errors, hugePageSizes, numaNodes } = props;
  const set = (databases: PlannerForm["databases"]) => setForm({ ...form, databases });
  return (
    <section className={classes.group} aria-labelledby="planner-databases">
      <h2 className={classes.legend} id="planner-databases">
        Which databases?
        <Button
          variant="default"
          size="compact-sm"
          leftSection={<PlusIcon />}
          aria-label="Add a database"
          onClick={() => set([...form.databases, newDatabase(form.databases)])}
        >
          Add
        </Button>
      </h2>
      {form.databases.map((database, index) => (
        <DatabaseInputs
          // biome-ignore lint/suspicious/noArrayIndexKey: names are edited, so the position is the identity
          key={index}
          database={database}
          index={index}
          engines={engines}
          hugePageSizes={hugePageSizes}
          numaNodes={numaNodes}
          errors={errors}
          kubernetes={form.reservations.kubernetes ?? false}
          onChange={(changed) => set(replaceAt(form.databases, index, changed))}
          onRemove={() => set(form.databases.filter((_, position) => position !== index))}
        />
      ))}
    </section>
  );
}

function TenantGroup({ form, setForm, errors, numaNodes }: GroupProps) {
  const set = (tenants: PlannerForm["tenants"]) => setForm({ ...form, tenants });
  return (
    <section className={classes.group} aria-labelledby="planner-tenants">
      <h2 className={classes.legend} id="planner-tenants">
        Other workloads on this node
        <Button
          variant="default"
          size="compact-sm"
          leftSection={<PlusIcon />}
          aria-label="Add a tenant"
          onClick={() => set([...form.tenants, newTenant(form.tenants)])}
        >
          Add
        </Button>
      </h2>
      {form.tenants.map((tenant, index) => (
        <TenantInputs
          // biome-ignore lint/suspicious/noArrayIndexKey: names are edited, so the position is the identity
          key={index}
          tenant={tenant}
          index={index}
          numaNodes={numaNodes}
          errors={errors}
          onChange={(changed) => set(replaceAt(form.tenants, index, changed))}
          onRemove={() => set(form.tenants.filter((_, position) => position !== index))}
        />
      ))}
    </section>
  );
}
