import type { FleetEvent } from "@/api/types";

export interface Change {
  key: string;
  text: string;
  /** Nodes that it is about. */
  count: number;
  /** The newest of them. */
  at: string;
  nodeId: string | null;
  nodeName: string | null;
}

/**
 * Events that say the same of several nodes as one change, in the order of the newest of each. A machine that was
 * removed and enrolled again is one node to its reader, so nodes count by name; what is about no node counts none.
 */
export function groupChanges(events: readonly FleetEvent[]): Change[] {
  const groups = new Map<string, Change & { nodes: Set<string> }>();
  for (const event of events) {
    const key = [event.kind, event.code, event.state, event.code ? "" : event.text].join("\u0000");
    const found = groups.get(key);
    const node = event.node_name ?? event.node_id;
    if (found) {
      if (node !== null) found.nodes.add(node);
      continue;
    }
    groups.set(key, {
      key,
      text: event.text,
      count: 0,
      at: event.at,
      nodeId: event.node_id,
      nodeName: event.node_name,
      nodes: new Set(node === null ? [] : [node]),
    });
  }
  return [...groups.values()].map(({ nodes, ...change }) => ({ ...change, count: nodes.size }));
}
