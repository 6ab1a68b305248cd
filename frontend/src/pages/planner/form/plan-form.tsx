import { Button, Modal, Stack, Textarea } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { memo, useState } from "react";
import type { EngineInfo, NodeDetail, Plan } from "@/api/types";
import { PlusIcon } from "@/components/ui/icons";
import { StateText } from "@/components/ui/states";
import type { FieldErrors } from "@/lib/field-errors";
import { GIB, MIB } from "@/lib/units";
import { DatabaseInputs } from "./database-inputs";
import { NodeInputs, PolicyInputs } from "./node-inputs";
import { ObservedWorkloads } from "./observed-workloads";
import { newDatabase, newTenant, type PlannerForm } from "./planner-form";
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
  /** A change of the newest form: a part that was not drawn again must not bring back an old one. */
  onForm: (change: PlannerForm | ((newest: PlannerForm) => PlannerForm)) => void;
  onNode: (id: string | null) => void;
}

/** Every input of a plan: the node, its databases, its other workloads, and the policy. */
export const PlanForm = memo(function PlanForm(props: PlanFormProps) {
  const { form, nodeId, node, errors, onForm, onNode } = props;
  const numaNodes = node?.numa_node_count ?? 1;
  return (
    <div className={classes.inputs}>
      <NodeInputs nodeId={nodeId} node={node} form={form} errors={errors} onNode={onNode} onChange={onForm} />
      <DatabaseGroup {...props} numaNodes={numaNodes} />
      <TenantGroup
        tenants={form.tenants}
        exclude={form.exclude}
        errors={errors}
        plan={props.plan}
        numaNodes={numaNodes}
        onForm={onForm}
      />
      <PolicyInputs form={form} errors={errors} onChange={onForm} />
    </div>
  );
});

function replaceAt<T>(items: readonly T[], index: number, item: T): T[] {
  return items.map((other, position) => (position === index ? item : other));
}

type GroupProps = PlanFormProps & { numaNodes: number };

function DatabaseGroup({ engines, form, node, errors, plan, numaNodes, onForm }: GroupProps) {
  const set = (databases: PlannerForm["databases"]) => onForm({ ...form, databases });
  const arch = node?.architecture ?? (form.node.arch || "x86_64");
  const sizes = node ? node.pools.map((pool) => pool.page_bytes) : [];
  const described = settingBytes(form.node.memory, 1);
  return (
    <section className={classes.group} aria-labelledby="planner-databases">
      <h2 className={classes.legend} id="planner-databases">
        Databases
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
          hugePageSizes={sizes.length > 0 ? sizes : (HUGE_PAGE_SIZES[arch] ?? [2 * MIB, GIB])}
          numaNodes={numaNodes}
          errors={errors}
          plan={plan}
          memoryBytes={node?.mem_total_bytes ?? described ?? DEFAULT_NODE_BYTES}
          kubernetes={form.reservations.kubernetes ?? false}
          onChange={(changed) => set(replaceAt(form.databases, index, changed))}
          onRemove={() => set(form.databases.filter((_, position) => position !== index))}
        />
      ))}
    </section>
  );
}

type TenantGroupProps = Pick<GroupProps, "errors" | "plan" | "numaNodes" | "onForm"> &
  Pick<PlannerForm, "tenants" | "exclude">;

const TenantGroup = memo(function TenantGroup(props: TenantGroupProps) {
  const { tenants, exclude, errors, plan, numaNodes, onForm } = props;
  const [pasting, paste] = useDisclosure(false);
  const set = (changed: PlannerForm["tenants"]) => onForm((form) => ({ ...form, tenants: changed }));
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
            onClick={() => set([...tenants, newTenant(tenants)])}
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
          onChange={(changed) => set(replaceAt(tenants, index, changed))}
          onRemove={() => set(tenants.filter((_, position) => position !== index))}
        />
      ))}
      <PastePods
        opened={pasting}
        onClose={paste.close}
        onPods={(pods) => {
          set([...tenants, ...pods]);
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
