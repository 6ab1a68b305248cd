import { NativeSelect, Switch, TextInput } from "@mantine/core";
import type { NodeDetail } from "@/api/types";
import type { FieldErrors } from "@/lib/field-errors";
import { NodeSelect } from "./node-select";
import type { PlannerForm } from "./planner-form";
import classes from "./planner-form.module.css";
import { WhatIfSlider } from "./what-if-slider";

const ARCHITECTURES = ["x86_64", "aarch64", "ppc64le", "riscv64", "s390x"];

interface NodeInputsProps {
  nodeId: string | null;
  node: NodeDetail | undefined;
  form: PlannerForm;
  errors: FieldErrors;
  onNode: (id: string | null) => void;
  onChange: (form: PlannerForm) => void;
}

/** Which node: one of the fleet, or one described here. */
export function NodeInputs({ nodeId, node, form, errors, onNode, onChange }: NodeInputsProps) {
  const setNode = (change: Partial<PlannerForm["node"]>) =>
    onChange({ ...form, node: { ...form.node, ...change } });
  return (
    <section className={classes.group} aria-labelledby="planner-node">
      <h2 className={classes.legend} id="planner-node">
        Node
      </h2>
      <NodeSelect nodeId={nodeId} node={node} onNode={onNode} />
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
        label="Kubernetes node"
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
  { value: "runtime", label: "At run time" },
];

/** A share as it stands in the form ("1%", "0.01") in per cent; null where it is not one. */
export function shareToPercent(text: string | undefined): number | null {
  const match = /^\s*(\d+(?:\.\d+)?)\s*(%?)\s*$/.exec(text ?? "");
  if (!match) return null;
  return Number((Number(match[1]) * (match[2] ? 1 : 100)).toPrecision(12));
}

const DEFAULT_PERCENT = 1;

/** The reader's choices: slack, accepted risk, and when to reserve. */
export function PolicyInputs({
  form,
  errors,
  onChange,
}: Pick<NodeInputsProps, "form" | "errors" | "onChange">) {
  const { policy } = form;
  const set = (change: Partial<PlannerForm["policy"]>) =>
    onChange({ ...form, policy: { ...policy, ...change } });
  const share = (field: "slack" | "risk", label: string, most: number) => (
    <div>
      <TextInput
        label={label}
        placeholder={`${DEFAULT_PERCENT}%`}
        value={policy[field] ?? ""}
        onChange={(event) => set({ [field]: event.currentTarget.value })}
        error={errors.at(`policy.${field}`)}
      />
      <WhatIfSlider
        label={label}
        min={0}
        max={most}
        step={0.25}
        value={shareToPercent(policy[field]) ?? DEFAULT_PERCENT}
        format={(percent) => `${percent}%`}
        onChange={(percent) => set({ [field]: `${percent}%` })}
      />
    </div>
  );
  return (
    <section className={classes.group} aria-labelledby="planner-policy">
      <h2 className={classes.legend} id="planner-policy">
        Policy
      </h2>
      <div className={classes.pair}>
        {share("slack", "Slack per pool", 10)}
        {share("risk", "Accepted risk", 10)}
      </div>
      <div className={classes.pair}>
        <TextInput
          label="Keep free"
          placeholder="default"
          value={policy.free_margin ?? ""}
          onChange={(event) => set({ free_margin: event.currentTarget.value })}
          error={errors.at("policy.free_margin")}
        />
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
