import { Select } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { useInfiniteQuery } from "@tanstack/react-query";
import { useState } from "react";
import { nodesQuery } from "@/api/nodes";
import { asApiError } from "@/api/problem";
import type { NodeDetail, NodeSummary } from "@/api/types";
import { SyntheticBadge } from "@/components/ui/badges";
import { formatBytes } from "@/lib/units";

const INLINE = "inline";

interface NodeSelectProps {
  nodeId: string | null;
  /** The chosen node, when it is known: it need not be among those found. */
  node: NodeDetail | undefined;
  onNode: (id: string | null) => void;
}

function optionOf(node: Pick<NodeSummary, "id" | "name">) {
  return {
    value: node.id,
    label: node.name,
  };
}

/** Any node of the fleet, found by name on the server: a fleet may hold more than one page of a list. */
export function NodeSelect({ nodeId, node, onNode }: NodeSelectProps) {
  const [text, setText] = useState("");
  const [wanted] = useDebouncedValue(text, 150);
  const chosen = node && optionOf(node);
  const isLabel = chosen?.label === wanted || wanted === "Describe a node here";
  const query = useInfiniteQuery(nodesQuery(isLabel ? "" : wanted.trim()));
  const found = query.data?.pages[0]?.items.map(optionOf) ?? [];
  const others = found.filter(({ value }) => value !== nodeId);
  const missing = nodeId !== null && !chosen ? [{ value: nodeId, label: "Loading the node" }] : [];
  return (
    <>
      <Select
        label="Node"
        searchable
        allowDeselect={false}
        value={nodeId ?? INLINE}
        onChange={(value) => onNode(value === INLINE ? null : value)}
        onSearchChange={setText}
        filter={({ options }) => options}
        data={[...(chosen ? [chosen] : missing), ...others, { value: INLINE, label: "Describe a node here" }]}
        description={
          // The field cuts a long name; beneath it there is room.
          node
            ? `${formatBytes(node.mem_total_bytes)}, ${node.numa_node_count ?? "unknown"} NUMA ${node.numa_node_count === 1 ? "node" : "nodes"}`
            : query.data?.pages[0]?.next_cursor
              ? "Type a part of the name to find others."
              : undefined
        }
        inputWrapperOrder={["label", "input", "description", "error"]}
        title={node?.name}
        error={query.isError ? asApiError(query.error).title : undefined}
        nothingFoundMessage="No node has such a name"
      />
      {node?.synthetic && (
        <div>
          <SyntheticBadge />
        </div>
      )}
    </>
  );
}
