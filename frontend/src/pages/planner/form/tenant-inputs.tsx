import { ActionIcon } from "@mantine/core";
import { memo, useCallback } from "react";
import type { FieldErrors } from "@/api/field-errors";
import { TrashIcon } from "@/components/ui/icons";
import type { TenantForm } from "../draft/planner-form";
import { NumaNodeInput } from "./database/numa-node-input";
import { ChoiceField, TextField } from "./fields";
import classes from "./planner-form.module.css";

type TenantField = keyof TenantForm;

interface TenantInputsProps {
  tenant: TenantForm;
  index: number;
  numaNodes: number;
  errors: FieldErrors;
  onChange: (index: number, change: Partial<TenantForm>) => void;
  onRemove: (index: number) => void;
}

const KINDS = [
  { value: "pod", label: "Pod" },
  { value: "service", label: "Service" },
  { value: "page_cache", label: "Page cache" },
];

/** One workload beside the databases. */
export const TenantInputs = memo(function TenantInputs(props: TenantInputsProps) {
  const { tenant, index, numaNodes, errors, onChange, onRemove } = props;
  const at = (field: string) => errors.at(`tenants.${index}.${field}`);
  const set = useCallback(
    (field: TenantField, value: string) => onChange(index, { [field]: value }),
    [onChange, index],
  );
  const text = (field: "name" | "count" | "request" | "limit", label: string, placeholder: string) => (
    <TextField
      field={field}
      label={label}
      placeholder={placeholder}
      unitBytes={field === "request" || field === "limit" ? 1 : undefined}
      value={tenant[field]}
      onValue={set}
      error={at(field)}
    />
  );
  return (
    <fieldset className={classes.item} aria-label={`Workload ${tenant.name || index + 1}`}>
      <div className={classes.head}>
        {text("name", "Name", "app")}
        <ChoiceField
          field="kind"
          label="Kind"
          data={KINDS}
          value={tenant.kind}
          onValue={set}
          error={at("kind")}
        />
        <ActionIcon
          variant="subtle"
          className={classes.remove}
          onClick={() => onRemove(index)}
          aria-label={`Remove the workload ${tenant.name}`}
        >
          <TrashIcon />
        </ActionIcon>
      </div>
      <div className={classes.triple}>
        {text("count", "Replicas", "1")}
        {text("request", "Request", "6Gi")}
        {text("limit", "Limit", "8Gi")}
      </div>
      <NumaNodeInput count={numaNodes} value={tenant.numa_node} onValue={set} error={at("numa_node")} />
    </fieldset>
  );
});
