import { Switch } from "@mantine/core";
import { memo, useCallback } from "react";
import type { FieldErrors } from "@/api/field-errors";
import type { NodeDetail } from "@/api/types";
import { Disclosure } from "@/components/ui/disclosure";
import type { TermName } from "@/components/ui/glossary";
import type { ChangeForm, PlannerForm } from "../draft/planner-form";
import { WhatIfSlider } from "./database/what-if-slider";
import { ChoiceField, TextField } from "./fields";
import { NodeSelect } from "./node-select";
import classes from "./planner-form.module.css";

const ARCHITECTURES = ["x86_64", "aarch64", "ppc64le", "riscv64", "s390x"];

interface NodeInputsProps {
  nodeId: string | null;
  node: NodeDetail | undefined;
  form: PlannerForm["node"];
  reservations: PlannerForm["reservations"];
  errors: FieldErrors;
  onNode: (id: string | null) => void;
  onForm: ChangeForm;
}

/** Which node: one of the fleet, or one described here. */
export const NodeInputs = memo(function NodeInputs(props: NodeInputsProps) {
  const { nodeId, node, form, reservations, errors, onNode, onForm } = props;
  const set = useCallback(
    (field: keyof PlannerForm["node"], value: string) =>
      onForm((old) => ({ ...old, node: { ...old.node, [field]: value } })),
    [onForm],
  );
  return (
    <section className={classes.group} aria-labelledby="planner-node">
      <h2 className={classes.legend} id="planner-node">
        Node
      </h2>
      <NodeSelect nodeId={nodeId} node={node} onNode={onNode} />
      {nodeId === null && (
        <>
          <div className={classes.pair}>
            <TextField
              field="memory"
              label="Memory"
              placeholder="64GiB"
              unitBytes={1}
              value={form.memory ?? ""}
              onValue={set}
              error={errors.at("node.memory")}
            />
            <TextField
              field="cpus"
              label="CPUs"
              placeholder="unknown"
              value={form.cpus ?? ""}
              onValue={set}
              error={errors.at("node.cpus")}
            />
          </div>
          <ChoiceField
            field="arch"
            label="Architecture"
            data={ARCHITECTURES}
            value={form.arch ?? "x86_64"}
            onValue={set}
            error={errors.at("node.arch")}
          />
        </>
      )}
      <ReservationInputs reservations={reservations} errors={errors} onForm={onForm} />
    </section>
  );
});

const PROVIDERS = [
  { value: "", label: "None or own" },
  { value: "gke", label: "GKE" },
  { value: "eks", label: "EKS" },
  { value: "aks", label: "AKS" },
];

type ReservationText = "provider" | "kube_reserved" | "system_reserved" | "eviction_hard" | "max_pods";

function ReservationInputs({
  reservations,
  errors,
  onForm,
}: Pick<NodeInputsProps, "reservations" | "errors" | "onForm">) {
  const set = useCallback(
    (change: Partial<PlannerForm["reservations"]>) =>
      onForm((old) => ({ ...old, reservations: { ...old.reservations, ...change, from_node: undefined } })),
    [onForm],
  );
  const setText = useCallback((field: ReservationText, value: string) => set({ [field]: value }), [set]);
  const text = (field: Exclude<ReservationText, "provider">, label: string, term: TermName) => (
    <TextField
      field={field}
      label={label}
      term={term}
      placeholder="default"
      unitBytes={field === "max_pods" ? undefined : 1}
      value={reservations[field] ?? ""}
      onValue={setText}
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
        <Disclosure label="What the kubelet sets aside" open={errors.has("reservations.")}>
          <div className={classes.pair}>
            <ChoiceField
              field="provider"
              label="Provider"
              data={PROVIDERS}
              value={reservations.provider ?? ""}
              onValue={setText}
              error={errors.at("reservations.provider")}
            />
            {text("max_pods", "Max pods", "max-pods")}
          </div>
          <div className={classes.pair}>
            {text("kube_reserved", "kube-reserved", "kube-reserved")}
            {text("system_reserved", "system-reserved", "system-reserved")}
          </div>
          {text("eviction_hard", "Hard eviction threshold", "eviction")}
        </Disclosure>
      ) : (
        text("system_reserved", "Reserved for the system", "system-reserved")
      )}
    </>
  );
}

const RESERVE_AT = [
  { value: "", label: "At boot" },
  { value: "runtime", label: "At run time" },
];

/** A share as it stands in the form ("1%", "0.01") in per cent; null where it is not one. */
function shareToPercent(text: string | undefined): number | null {
  const match = /^\s*(\d+(?:\.\d+)?)\s*(%?)\s*$/.exec(text ?? "");
  if (!match) return null;
  return Number((Number(match[1]) * (match[2] ? 1 : 100)).toPrecision(12));
}

const DEFAULT_PERCENT = 1;

interface PolicyInputsProps {
  policy: PlannerForm["policy"];
  errors: FieldErrors;
  onForm: ChangeForm;
}

const asPercent = (percent: number) => `${percent}%`;

/** The reader's choices: slack, accepted risk, and when to reserve. */
export const PolicyInputs = memo(function PolicyInputs({ policy, errors, onForm }: PolicyInputsProps) {
  const set = useCallback(
    (field: keyof PlannerForm["policy"], value: string) =>
      onForm((old) => ({ ...old, policy: { ...old.policy, [field]: value } })),
    [onForm],
  );
  const setPercent = useCallback(
    (field: "slack" | "risk", percent: number) => set(field, asPercent(percent)),
    [set],
  );
  const share = (field: "slack" | "risk", label: string, most: number) => (
    <div>
      <TextField
        field={field}
        label={label}
        term={field}
        placeholder={`${DEFAULT_PERCENT}%`}
        value={policy[field] ?? ""}
        onValue={set}
        error={errors.at(`policy.${field}`)}
      />
      <WhatIfSlider
        field={field}
        label={label}
        min={0}
        max={most}
        step={0.25}
        value={shareToPercent(policy[field]) ?? DEFAULT_PERCENT}
        format={asPercent}
        onValue={setPercent}
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
        <TextField
          field="free_margin"
          label="Keep free"
          term="free-margin"
          placeholder="default"
          value={policy.free_margin ?? ""}
          onValue={set}
          error={errors.at("policy.free_margin")}
        />
        <ChoiceField
          field="reserve_at"
          label="Reserve"
          term="reserve-at"
          data={RESERVE_AT}
          value={policy.reserve_at ?? ""}
          onValue={set}
          error={errors.at("policy.reserve_at")}
        />
      </div>
    </section>
  );
});
