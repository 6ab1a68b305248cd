import { Button } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { memo, type ReactNode, useCallback, useMemo } from "react";
import type { FieldErrors } from "@/api/field-errors";
import type { EngineInfo, NodeDetail, Plan } from "@/api/types";
import { Disclosure } from "@/components/ui/disclosure";
import { PlusIcon } from "@/components/ui/icons";
import { GIB } from "@/lib/units";
import {
  type ChangeForm,
  type DatabaseForm,
  newDatabase,
  newTenant,
  type PlannerForm,
} from "../draft/planner-form";
import { settingBytes } from "../draft/pool-size";
import { DatabaseInputs } from "./database/database-inputs";
import type { ChangeDatabase } from "./database/setting-inputs";
import { NodeInputs, PolicyInputs } from "./node-inputs";
import { ObservedWorkloads } from "./observed-workloads";
import { PastePods } from "./paste-pods";
import classes from "./planner-form.module.css";
import { TenantInputs } from "./tenant-inputs";

/** With more databases than these, each is one line that opens. */
const MOST_OPEN = 4;
const DEFAULT_NODE_BYTES = 64 * GIB;

interface PlanFormProps {
  engines: readonly EngineInfo[];
  form: PlannerForm;
  nodeId: string | null;
  node: NodeDetail | undefined;
  errors: FieldErrors;
  plan: Plan | null;
  /** What runs on the node; null where that is not known. */
  running: readonly DatabaseForm[] | null;
  /** The same when the node was chosen. */
  brought: readonly DatabaseForm[] | null;
  onForm: ChangeForm;
  onNode: (id: string | null) => void;
}

/** Every input of a plan: the node, its databases, its other workloads, and the policy. */
export const PlanForm = memo(function PlanForm(props: PlanFormProps) {
  const { engines, form, nodeId, node, errors, plan, running, brought, onForm, onNode } = props;
  const numaNodes = node?.numa_node_count ?? 1;
  const described = settingBytes(form.node.memory, 1);
  return (
    <div className={classes.inputs}>
      <NodeInputs
        nodeId={nodeId}
        node={node}
        form={form.node}
        reservations={form.reservations}
        errors={errors}
        onNode={onNode}
        onForm={onForm}
      />
      <DatabaseGroup
        engines={engines}
        databases={form.databases}
        hugePageSizes={usePageSizes(node, plan)}
        memoryBytes={node?.mem_total_bytes ?? described ?? DEFAULT_NODE_BYTES}
        kubernetes={form.reservations.kubernetes ?? false}
        numaNodes={numaNodes}
        errors={errors}
        plan={plan}
        running={running}
        brought={brought}
        onForm={onForm}
      />
      <TenantGroup
        tenants={form.tenants}
        exclude={form.exclude}
        errors={errors}
        plan={plan}
        numaNodes={numaNodes}
        nodeName={node?.name}
        onForm={onForm}
      />
      <PolicyInputs policy={form.policy} errors={errors} onForm={onForm} />
    </div>
  );
});

/** The huge page sizes of a node, or of what is described: the plan weighed each of them. */
function usePageSizes(node: NodeDetail | undefined, plan: Plan | null): readonly number[] {
  return useMemo(() => {
    const sizes = new Set((node?.pools ?? []).map((pool) => pool.page_bytes));
    for (const pool of plan?.pools ?? []) sizes.add(pool.page_bytes);
    for (const gain of plan?.gains ?? []) if (gain.backing_kind === "hugetlb") sizes.add(gain.page_bytes);
    return [...sizes].sort((a, b) => a - b);
  }, [node, plan]);
}

type DatabaseGroupProps = Pick<
  PlanFormProps,
  "engines" | "errors" | "plan" | "running" | "brought" | "onForm"
> &
  Pick<PlannerForm, "databases"> & {
    hugePageSizes: readonly number[];
    memoryBytes: number;
    kubernetes: boolean;
    numaNodes: number;
  };

const DatabaseGroup = memo(function DatabaseGroup(props: DatabaseGroupProps) {
  const { databases, plan, onForm, ...shared } = props;
  const change: ChangeDatabase = useCallback(
    (index, of) =>
      onForm((form) => ({
        ...form,
        databases: form.databases.map((database, position) =>
          position === index ? { ...database, ...of(database) } : database,
        ),
      })),
    [onForm],
  );
  const remove = useCallback(
    (index: number) =>
      onForm((form) => ({
        ...form,
        databases: form.databases.filter((_, position) => position !== index),
      })),
    [onForm],
  );
  return (
    <section className={classes.group} aria-labelledby="planner-databases">
      <h2 className={classes.legend} id="planner-databases">
        Databases
        <Button
          variant="default"
          size="compact-sm"
          leftSection={<PlusIcon />}
          aria-label="Add a database"
          onClick={() =>
            onForm((form) => ({ ...form, databases: [...form.databases, newDatabase(form.databases)] }))
          }
        >
          Add
        </Button>
      </h2>
      {databases.map((database, index) => (
        <OneOfMany
          // biome-ignore lint/suspicious/noArrayIndexKey: names are edited, so the position is the identity
          key={index}
          name={`Database ${database.name || index + 1}`}
          isFolded={databases.length > MOST_OPEN}
          isOpen={shared.errors.has(`databases.${index}.`) || index === databases.length - 1}
        >
          <DatabaseInputs
            database={database}
            index={index}
            planned={plan?.instances.find(({ name }) => name === database.name.trim())}
            {...shared}
            onChange={change}
            onRemove={remove}
          />
        </OneOfMany>
      ))}
    </section>
  );
});

interface OneOfManyProps {
  name: string;
  isFolded: boolean;
  isOpen: boolean;
  children: ReactNode;
}

/** An entry as it is, or with many others as one line that opens; what becomes wrong opens by itself. */
function OneOfMany({ name, isFolded, isOpen, children }: OneOfManyProps) {
  if (!isFolded) return children;
  return (
    <Disclosure key={isOpen ? "open" : "closed"} label={name} open={isOpen}>
      {children}
    </Disclosure>
  );
}

type TenantGroupProps = Pick<PlanFormProps, "errors" | "plan" | "onForm"> &
  Pick<PlannerForm, "tenants" | "exclude"> & { numaNodes: number; nodeName: string | undefined };

const TenantGroup = memo(function TenantGroup(props: TenantGroupProps) {
  const { tenants, exclude, errors, plan, numaNodes, nodeName, onForm } = props;
  const [pasting, paste] = useDisclosure(false);
  const set = useCallback(
    (changed: (old: PlannerForm["tenants"]) => PlannerForm["tenants"]) =>
      onForm((form) => ({ ...form, tenants: changed(form.tenants) })),
    [onForm],
  );
  const change = useCallback(
    (index: number, of: Partial<PlannerForm["tenants"][number]>) =>
      set((old) => old.map((tenant, position) => (position === index ? { ...tenant, ...of } : tenant))),
    [set],
  );
  const remove = useCallback(
    (index: number) => set((old) => old.filter((_, position) => position !== index)),
    [set],
  );
  return (
    <section className={classes.group} aria-labelledby="planner-tenants">
      <h2 className={classes.legend} id="planner-tenants">
        Other workloads
        <span className={classes.actions}>
          <Button variant="default" size="compact-sm" onClick={paste.open}>
            Paste pods
          </Button>
          <Button
            variant="default"
            size="compact-sm"
            leftSection={<PlusIcon />}
            aria-label="Add a workload"
            onClick={() => set((old) => [...old, newTenant(old)])}
          >
            Add
          </Button>
        </span>
      </h2>
      <ObservedWorkloads
        plan={plan}
        exclude={exclude ?? []}
        onExclude={(names) => onForm((form) => ({ ...form, exclude: names.length > 0 ? names : undefined }))}
      />
      {tenants.map((tenant, index) => (
        <TenantInputs
          // biome-ignore lint/suspicious/noArrayIndexKey: names are edited, so the position is the identity
          key={index}
          tenant={tenant}
          index={index}
          numaNodes={numaNodes}
          errors={errors}
          onChange={change}
          onRemove={remove}
        />
      ))}
      <PastePods
        opened={pasting}
        onClose={paste.close}
        nodeName={nodeName}
        onPods={(pods, databases) => {
          onForm((form) => ({
            ...form,
            tenants: [...form.tenants, ...pods],
            databases: [...form.databases, ...databases],
          }));
          paste.close();
        }}
      />
    </section>
  );
});
