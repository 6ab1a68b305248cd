import { NativeSelect, Select, Switch, TextInput } from "@mantine/core";
import type { NodeSummary } from "@/api/types";
import type { FieldErrors } from "@/lib/field-errors";
import { formatBytes } from "@/lib/units";
import type { PlannerForm } from "./planner-form";
import classes from "./planner-form.module.css";

const INLINE = "inline";
const ARCHITECTURES = ["x86_64", "aarch64", "ppc64le", "riscv64", "s390x"];

interface NodeInputsProps {
  nodes: readonly NodeSummary[];
  nodeId: string | null;
  form: PlannerForm;
  errors: FieldErrors;
  onNode: (id: string | null) => void;
  onChange: (form: PlannerForm) => void;
}

/** Which node: one of the fleet, or one described here. */
export function NodeInputs({ nodes, nodeId, form, errors, onNode, onChange }: NodeInputsProps) {
  const setNode = (change: Partial<PlannerForm["node"]>) =>
    onChange({ ...form, node: { ...form.node, ...change } });
  return (
    <section className={classes.group} aria-labelledby="planner-node">
      <h2 className={classes.legend} id="planner-node">
        Which node?
      </h2>
      <Select
        label="Node"
        searchable
        allowDeselect={false}
        value={nodeId ?? INLINE}
        onChange={(value) => onNode(value === INLINE ? null : value)}
        data={[
          ...nodes.map((node) => ({
            value: node.id,
            label: `${node.name}, ${formatBytes(node.mem_total_bytes)}${node.synthetic ? ", synthetic" : ""}`,
          })),
          { value: INLINE, label: "Describe a node here" },
        ]}
      />
      {nodeId === null && (
        <>
          <div className={classes.pair}>
            <TextInput
              label="Memory"
              placeholder="64GiB"
              value={form.node.memory ?? ""}
              onChange={(event) => setNode({ memory: event.currentTarget.value })}
              error={errors.at("node.memory")}
            />
            <TextInput
              label="CPUs"
              placeholder="unknown"
              value={form.node.cpus ?? ""}
              onChange={(event) => setNode({ cpus: event.currentTarget.value })}
              error={errors.at("node.cpus")}
            />
          </div>
          <NativeSelect
            label="Architecture"
            data={ARCHITECTURES}
            value={form.node.arch ?? "x86_64"}
            onChange={(event) => setNode({ arch: event.currentTarget.value })}
            error={errors.at("node.arch")}
          />
        </>
      )}
      <ReservationInputs form={form} errors={errors} onChange={onChange} />
    </section>
  );
}

const PROVIDERS = [
  { value: "", label: "None or own" },
  { value: "gke", label: "GKE" },
  { value: "eks", label: "EKS" },
  { value: "aks", label: "AKS" },
];

function ReservationInputs({
  form,
  errors,
  onChange,
}: Pick<NodeInputsProps, "form" | "errors" | "onChange">) {
  const { reservations } = form;
  const set = (change: Partial<PlannerForm["reservations"]>) =>
    onChange({ ...form, reservations: { ...reservations, ...change } });
  const text = (field: "kube_reserved" | "system_reserved" | "eviction_hard" | "max_pods", label: string) => (
    <TextInput
      label={label}
      placeholder="default"
      value={reservations[field] ?? ""}
      onChange={(event) => set({ [field]: event.currentTarget.value })}
      error={errors.at(`reservations.${field}`)}
    />
  );
  return (
    <>
      <Switch
        label="It is a Kubernetes node"
        checked={reservations.kubernetes ?? false}
        onChange={(event) => set({ kubernetes: event.currentTarget.checked })}
      />
      {reservations.kubernetes ? (
        <>
          <div className={classes.pair}>
            <NativeSelect
              label="Provider"
              data={PROVIDERS}
              value={reservations.provider ?? ""}
              onChange={(event) => set({ provider: event.currentTarget.value })}
              error={errors.at("reservations.provider")}
            />
            {text("max_pods", "Max pods")}
          </div>
          <div className={classes.pair}>
            {text("kube_reserved", "kube-reserved")}
            {text("system_reserved", "system-reserved")}
          </div>
          {text("eviction_hard", "Hard eviction threshold")}
        </>
      ) : (
        text("system_reserved", "Reserved for the system")
      )}
    </>
  );
}

const RESERVE_AT = [
  { value: "", label: "At boot" },
  { value: "runtime", label: "While it runs" },
];

/** The reader's choices: slack, risk, and when to reserve. */
export function PolicyInputs({
  form,
  errors,
  onChange,
}: Pick<NodeInputsProps, "form" | "errors" | "onChange">) {
  const { policy } = form;
  const set = (change: Partial<PlannerForm["policy"]>) =>
    onChange({ ...form, policy: { ...policy, ...change } });
  const text = (field: "slack" | "risk" | "free_margin", label: string, placeholder: string) => (
    <TextInput
      label={label}
      placeholder={placeholder}
      value={policy[field] ?? ""}
      onChange={(event) => set({ [field]: event.currentTarget.value })}
      error={errors.at(`policy.${field}`)}
    />
  );
  return (
    <section className={classes.group} aria-labelledby="planner-policy">
      <h2 className={classes.legend} id="planner-policy">
        How careful?
      </h2>
      <div className={classes.pair}>
        {text("slack", "Slack per pool", "1%")}
        {text("risk", "Accepted risk", "1%")}
      </div>
      <div className={classes.pair}>
        {text("free_margin", "Keep free", "default")}
        <NativeSelect
          label="Reserve"
          data={RESERVE_AT}
          value={policy.reserve_at ?? ""}
          onChange={(event) => set({ reserve_at: event.currentTarget.value })}
          error={errors.at("policy.reserve_at")}
        />
      </div>
    </section>
  );
}
