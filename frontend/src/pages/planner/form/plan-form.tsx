import { Button, Modal, Stack, Textarea } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { memo, useCallback, useMemo, useState } from "react";
import type { EngineInfo, NodeDetail, Plan } from "@/api/types";
import { PlusIcon } from "@/components/ui/icons";
import { StateText } from "@/components/ui/states";
import type { FieldErrors } from "@/lib/field-errors";
import { GIB, MIB } from "@/lib/units";
import { type ChangeDatabase, DatabaseInputs } from "./database-inputs";
import { NodeInputs, PolicyInputs } from "./node-inputs";
import { ObservedWorkloads } from "./observed-workloads";
import { type ChangeForm, type DatabaseForm, newDatabase, newTenant, type PlannerForm } from "./planner-form";
import classes from "./planner-form.module.css";
import { podsToTenants } from "./pods";
import { settingBytes } from "./pool-size";
import { TenantInputs } from "./tenant-inputs";

const HUGE_PAGE_SIZES: Record<string, readonly number[]> = {
  x86_64: [2 * MIB, GIB],
  aarch64: [64 * 1024, 2 * MIB, 32 * MIB, GIB],
  ppc64le: [2 * MIB, GIB],
  riscv64: [2 * MIB, GIB],
  s390x: [MIB, 2 * GIB],
};
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
  onForm: ChangeForm;
  onNode: (id: string | null) => void;
}

/** Every input of a plan: the node, its databases, its other workloads, and the policy. */
export const PlanForm = memo(function PlanForm(props: PlanFormProps) {
  const { engines, form, nodeId, node, errors, plan, running, onForm, onNode } = props;
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
        hugePageSizes={usePageSizes(node, form.node.arch)}
        memoryBytes={node?.mem_total_bytes ?? described ?? DEFAULT_NODE_BYTES}
        kubernetes={form.reservations.kubernetes ?? false}
        numaNodes={numaNodes}
        errors={errors}
        plan={plan}
        running={running}
        onForm={onForm}
      />
      <TenantGroup
        tenants={form.tenants}
        exclude={form.exclude}
        errors={errors}
        plan={plan}
        numaNodes={numaNodes}
        onForm={onForm}
      />
      <PolicyInputs policy={form.policy} errors={errors} onForm={onForm} />
    </div>
  );
});

/** The huge page sizes of a node, or of an architecture where no node is chosen. */
function usePageSizes(node: NodeDetail | undefined, described: string | undefined): readonly number[] {
  return useMemo(() => {
    const sizes = node ? node.pools.map((pool) => pool.page_bytes) : [];
    if (sizes.length > 0) return sizes;
    return HUGE_PAGE_SIZES[node?.architecture ?? (described || "x86_64")] ?? [2 * MIB, GIB];
  }, [node, described]);
}

type DatabaseGroupProps = Pick<PlanFormProps, "engines" | "errors" | "plan" | "running" | "onForm"> &
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
        <DatabaseInputs
          // biome-ignore lint/suspicious/noArrayIndexKey: names are edited, so the position is the identity
          key={index}
          database={database}
          index={index}
          planned={plan?.instances.find(({ name }) => name === database.name.trim())}
          {...shared}
          onChange={change}
          onRemove={remove}
        />
      ))}
    </section>
  );
});

type TenantGroupProps = Pick<PlanFormProps, "errors" | "plan" | "onForm"> &
  Pick<PlannerForm, "tenants" | "exclude"> & { numaNodes: number };

const TenantGroup = memo(function TenantGroup(props: TenantGroupProps) {
  const { tenants, exclude, errors, plan, numaNodes, onForm } = props;
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
        onPods={(pods) => {
          set((old) => [...old, ...pods]);
          paste.close();
        }}
      />
    </section>
  );
});

interface PastePodsProps {
  opened: boolean;
  onClose: () => void;
  onPods: (tenants: PlannerForm["tenants"]) => void;
}

function PastePods({ opened, onClose, onPods }: PastePodsProps) {
  const [text, setText] = useState("");
  const read = text.trim() === "" ? null : podsToTenants(text);
  return (
    <Modal opened={opened} onClose={onClose} title="Workloads from kubectl">
      <Stack gap="sm">
        <StateText>
          Paste the output of <span className="hp-mono">kubectl get pods -o json</span>. Requests and limits
          are taken; pods of one owner become one workload with replicas. Nothing else is sent or kept.
        </StateText>
        <Textarea
          label="Pods as JSON"
          autosize
          minRows={4}
          maxRows={12}
          spellCheck={false}
          value={text}
          onChange={(event) => setText(event.currentTarget.value)}
          error={read?.error}
        />
        <Button
          disabled={!read || read.tenants.length === 0}
          onClick={() => {
            if (read) onPods(read.tenants);
            setText("");
          }}
        >
          {read && read.tenants.length > 0 ? `Add ${read.tenants.length} workloads` : "Add workloads"}
        </Button>
      </Stack>
    </Modal>
  );
}
