import { memo } from "react";
import { ChoiceField } from "../fields";

interface NumaNodeInputProps {
  /** NUMA nodes of the planned node. */
  count: number;
  value: string | undefined;
  error: string | undefined;
  onValue: (field: "numa_node", value: string) => void;
}

/** Where something is bound. Shown where there is a choice, or a choice that no longer fits. */
export const NumaNodeInput = memo(function NumaNodeInput({
  count,
  value = "",
  error,
  onValue,
}: NumaNodeInputProps) {
  if (count < 2 && value === "") return null;
  const ids = Array.from({ length: Math.max(count, 1) }, (_, id) => String(id));
  return (
    <ChoiceField
      field="numa_node"
      label="NUMA node"
      data={[
        { value: "", label: "Any" },
        ...ids,
        ...(value === "" || ids.includes(value) ? [] : [{ value, label: `${value} (not on this node)` }]),
      ]}
      value={value}
      onValue={onValue}
      error={error}
    />
  );
});
