import { NativeSelect } from "@mantine/core";

interface NumaNodeInputProps {
  /** NUMA nodes of the planned node. */
  count: number;
  value: string | undefined;
  error: string | undefined;
  onChange: (value: string) => void;
}

/** Where something is bound. Shown where there is a choice, or a choice that no longer fits. */
export function NumaNodeInput({ count, value = "", error, onChange }: NumaNodeInputProps) {
  if (count < 2 && value === "") return null;
  const ids = Array.from({ length: Math.max(count, 1) }, (_, id) => String(id));
  return (
    <NativeSelect
      label="NUMA node"
      data={[
        { value: "", label: "Any" },
        ...ids,
        ...(value === "" || ids.includes(value) ? [] : [{ value, label: `${value} (not on this node)` }]),
      ]}
      value={value}
      onChange={(event) => onChange(event.currentTarget.value)}
      error={error}
    />
  );
}
