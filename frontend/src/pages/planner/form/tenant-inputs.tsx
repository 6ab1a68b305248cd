import { ActionIcon, NativeSelect, TextInput } from "@mantine/core";
import { TrashIcon } from "@/components/ui/icons";
import type { FieldErrors } from "@/lib/field-errors";
import { NumaNodeInput } from "./numa-node-input";
import type { TenantForm } from "./planner-form";
import classes from "./planner-form.module.css";

interface TenantInputsProps {
  tenant: TenantForm;
  index: number;
  numaNodes: number;
  errors: FieldErrors;
  onChange: (tenant: TenantForm) => void;
  onRemove: () => void;
}

const KINDS = [
  { value: "pod", label: "Pod" },
  { value: "service", label: "Service" },
  { value: "page_cache", label: "Page cache" },
];

/** One co-located consumer of ordinary memory. */
export function TenantInputs({ tenant, index, numaNodes, errors, onChange, onRemove }: TenantInputsProps) {
  const at = (field: string) => errors.at(`tenants.${index}.${field}`);
  const text = (field: "name" | "count" | "request" | "limit", label: string, placeholder: string) => (
    <TextInput
      label={label}
      placeholder={placeholder}
      value={tenant[field]}
      onChange={(event) => onChange({ ...tenant, [field]: event.currentTarget.value })}
      error={at(field)}
    />
  );
  return (
    <fieldset className={classes.item} aria-label={`Tenant ${tenant.name || index + 1}`}>
      <div className={classes.head}>
        {text("name", "Name", "app")}
        <NativeSelect
          label="Kind"
          data={KINDS}
          value={tenant.kind}
          onChange={(event) => onChange({ ...tenant, kind: event.currentTarget.value as TenantForm["kind"] })}
          error={at("kind")}
        />
        <ActionIcon
          variant="subtle"
          className={classes.remove}
          onClick={onRemove}
          aria-label={`Remove the tenant ${tenant.name}`}
        >
          <TrashIcon />
        </ActionIcon>
      </div>
      <div className={classes.triple}>
        {text("count", "Replicas", "1")}
        {text("request", "Request", "6Gi")}
        {text("limit", "Limit", "8Gi")}
      </div>
      <NumaNodeInput
        count={numaNodes}
        value={tenant.numa_node}
        onChange={(value) => onChange({ ...tenant, numa_node: value })}
        error={at("numa_node")}
      />
    </fieldset>
  );
}
