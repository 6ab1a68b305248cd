import { slimObject } from "@/lib/kubernetes-objects";

/** A file that was dropped, with its text. */
export interface Dropped {
  name: string;
  text: string;
}

type Json = Record<string, unknown>;

const KINDS = new Set(["List", "NodeList", "PodList", "Node", "Pod"]);

/** The cluster's objects of all files that hold some; the other files are for the linter. */
export function sortedOut(files: readonly Dropped[]): { objects: Json | null; others: Dropped[] } {
  const items: Json[] = [];
  const others: Dropped[] = [];
  for (const file of files) {
    const found = clusterObjects(file.text);
    if (found) items.push(...found);
    else others.push(file);
  }
  return { objects: items.length > 0 ? { apiVersion: "v1", kind: "List", items } : null, others };
}

/** The objects of `kubectl get ... -o json`; null where a text is something else. A manifest of one pod is a file. */
function clusterObjects(text: string): Json[] | null {
  if (!/^\s*\{/.test(text)) return null;
  try {
    const found = JSON.parse(text) as Json;
    if (typeof found.kind !== "string" || !KINDS.has(found.kind)) return null;
    const items = Array.isArray(found.items) ? (found.items as Json[]) : [found];
    const isCluster = items.some(({ kind, status }) => kind === "Node" || (kind === "Pod" && status));
    return isCluster || found.kind.endsWith("List") ? items.map(slimObject) : null;
  } catch {
    return null;
  }
}
