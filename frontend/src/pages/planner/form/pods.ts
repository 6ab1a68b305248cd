import * as z from "zod/mini";
import { GIB, KIB, MIB, TIB } from "@/lib/units";
import type { TenantForm } from "./planner-form";

const resources = z.optional(z.record(z.string(), z.union([z.string(), z.number()])));
const container = z.object({
  resources: z.optional(z.object({ requests: resources, limits: resources })),
});
const pod = z.object({
  metadata: z.object({
    name: z.string(),
    namespace: z.optional(z.string()),
    ownerReferences: z.optional(z.array(z.object({ kind: z.string(), name: z.string() }))),
  }),
  spec: z.object({ containers: z.array(container) }),
  status: z.optional(z.object({ phase: z.optional(z.string()) })),
});
const podList = z.object({ items: z.array(pod) });

const UNITS: Record<string, number> = {
  "": 1,
  k: 1e3,
  M: 1e6,
  G: 1e9,
  T: 1e12,
  Ki: KIB,
  Mi: MIB,
  Gi: GIB,
  Ti: TIB,
  m: 1e-3,
};

/** A Kubernetes quantity in bytes: "6Gi", "1500M", "1e9"; null where it is none. */
export function quantityBytes(text: string | number): number | null {
  const match = /^\s*([\d.]+(?:[eE][+-]?\d+)?)\s*([A-Za-z]*)\s*$/.exec(String(text));
  const factor = UNITS[match?.[2] ?? ""];
  if (!match || factor === undefined) return null;
  const bytes = Number(match[1]) * factor;
  return Number.isFinite(bytes) ? Math.ceil(bytes) : null;
}

type Pod = z.infer<typeof pod>;

/** What all containers of a pod ask for, in bytes; null when one of them names no memory: then it is not bounded. */
function memoryOf({ spec }: Pod, kind: "requests" | "limits"): number | null {
  let sum = 0;
  for (const { resources: asked } of spec.containers) {
    const given = asked?.[kind]?.memory;
    const bytes = given === undefined ? null : quantityBytes(given);
    if (bytes === null) return null;
    sum += bytes;
  }
  return sum;
}

/** The workload a pod belongs to: a ReplicaSet's name less its hash is its Deployment's. */
function ownerOf({ metadata }: Pod): string {
  const owner = metadata.ownerReferences?.[0];
  if (!owner) return metadata.name;
  return owner.kind === "ReplicaSet" ? owner.name.replace(/-[a-z0-9]{5,10}$/, "") : owner.name;
}

const asText = (bytes: number | null) => (bytes === null ? "" : String(bytes));

/** Workloads out of `kubectl get pods -o json`: those of one owner and size are one, with replicas. */
export function podsToTenants(text: string): { tenants: TenantForm[]; error?: string } {
  let document: unknown;
  try {
    document = JSON.parse(text);
  } catch {
    return { tenants: [], error: "This is not JSON. Expected the output of kubectl get pods -o json." };
  }
  const read = podList.safeParse(document);
  if (!read.success) return { tenants: [], error: "Expected a list of pods, with items." };
  const running = read.data.items.filter(
    ({ status }) => status?.phase !== "Succeeded" && status?.phase !== "Failed",
  );
  const groups = new Map<
    string,
    { name: string; count: number; request: number | null; limit: number | null }
  >();
  for (const item of running) {
    const [name, request, limit] = [ownerOf(item), memoryOf(item, "requests"), memoryOf(item, "limits")];
    const key = `${item.metadata.namespace ?? ""}/${name}/${request}/${limit}`;
    const group = groups.get(key) ?? { name, count: 0, request, limit };
    group.count += 1;
    groups.set(key, group);
  }
  return {
    tenants: [...groups.values()].map(({ name, count, request, limit }) => ({
      name,
      kind: "pod",
      count: String(count),
      request: asText(request),
      limit: asText(limit),
    })),
    error: running.length === 0 ? "The list holds no running pod." : undefined,
  };
}
