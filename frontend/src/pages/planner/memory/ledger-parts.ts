import type { LedgerKind, LedgerPart, Plan } from "@/api/types";
import { compareParts, type MapBar, type MapPart } from "@/components/memory-map/memory-map-types";
import { NOT_ACCOUNTED } from "@/components/memory-map/node-memory";
import type { Source } from "@/components/ui/badges";
import { pageSizeColor, pageSizeShort } from "@/lib/page-size";
import { token } from "@/theme/tokens";

/** Name and hue of the ledger's parts. */
const KINDS: Record<LedgerKind | "reclaimable", { label: string; color: string; look: MapPart["look"] }> = {
  kernel: { label: "Kernel", color: token("ledger-kernel"), look: "solid" },
  system_reserved: {
    label: "Reserved for the system",
    color: token("ledger-system-reserved"),
    look: "solid",
  },
  kube_reserved: { label: "Reserved for the kubelet", color: token("ledger-kube-reserved"), look: "solid" },
  eviction: { label: "Eviction threshold", color: token("ledger-eviction"), look: "solid" },
  tenants: { label: "Workloads", color: token("ledger-tenants"), look: "solid" },
  engine_private: { label: "Engines' private memory", color: token("ledger-engine-private"), look: "solid" },
  page_tables: { label: "Page tables", color: token("ledger-page-tables"), look: "solid" },
  page_cache: { label: "Page cache that a database needs", color: token("ledger-page-cache"), look: "solid" },
  reclaimable: { label: "Reclaimable cache", color: token("ledger-reclaimable"), look: "solid" },
  pool: { label: "Pool of", color: token("page-2m"), look: "pool" },
  pool_slack: { label: "Idle", color: token("page-2m"), look: "slack" },
  free: { label: "Free", color: token("ledger-free"), look: "free" },
};

/** A source of which the reader must be most careful comes first when parts are joined. */
const CAUTION: readonly Source[] = [
  "unknown",
  "assumed",
  "catalogue",
  "cpuid",
  "computed",
  "given",
  "measured",
];

/** What no counter of the kernel names is a part of its own, as on the node's page: the kernel's own is measured. */
function isNotAccounted(part: LedgerPart): boolean {
  return part.name === NOT_ACCOUNTED.toLowerCase();
}

function partKey(part: LedgerPart): string {
  if (isNotAccounted(part)) return "unaccounted";
  return part.page_bytes === null ? part.kind : `${part.kind}:${part.page_bytes}`;
}

function joinParts(parts: readonly LedgerPart[]): MapPart {
  const [first] = parts as [LedgerPart];
  const { label: ofKind, color, look } = KINDS[first.kind];
  const label = isNotAccounted(first) ? NOT_ACCOUNTED : ofKind;
  const isPool = first.kind === "pool" || first.kind === "pool_slack";
  const pageBytes = first.page_bytes ?? undefined;
  const sources = parts.map(({ source }) => source as Source);
  const names = [...new Set(parts.map(({ name }) => name))].filter(Boolean);
  return {
    key: partKey(first),
    label: isPool && pageBytes ? `${label} ${pageSizeShort(pageBytes)} pages` : label,
    bytes: parts.reduce((sum, part) => sum + part.bytes, 0),
    color: isPool && pageBytes ? pageSizeColor(pageBytes, "hugetlb") : color,
    source: CAUTION.find((source) => sources.includes(source)) ?? "unknown",
    look,
    pageBytes: isPool ? pageBytes : undefined,
    detail:
      names.length > 1 || (names[0] && names[0].toLowerCase() !== label.toLowerCase())
        ? `${names.join(", ")}.`
        : undefined,
  };
}

/** Joins the ledger's parts of one kind (and page size), in drawing order. */
export function ledgerMapParts(parts: readonly LedgerPart[]): MapPart[] {
  const groups = new Map<string, LedgerPart[]>();
  for (const part of parts) groups.set(partKey(part), [...(groups.get(partKey(part)) ?? []), part]);
  return [...groups.values()].map(joinParts).sort(compareParts);
}

/** Free memory below zero is drawn as what it is: memory that is missing. */
function withMissing(parts: readonly MapPart[]): MapPart[] {
  return parts.map((part) =>
    part.look === "free" && part.bytes < 0
      ? {
          ...part,
          key: "missing",
          label: "Missing",
          look: "missing",
          bytes: -part.bytes,
          color: token("state-wrong"),
          detail: "The plan needs more than the node has.",
        }
      : part,
  );
}

/** A ledger as one bar, or one a NUMA node. */
function barsOf(name: string, { parts }: Plan["ledger"]): MapBar[] {
  const ids = [...new Set(parts.map((part) => part.numa_node))].sort((a, b) => a - b);
  return (ids.length < 2 ? [null] : ids).map((id): MapBar => {
    const own = id === null ? parts : parts.filter((part) => part.numa_node === id);
    return {
      key: id === null ? "node" : `numa${id}`,
      label: id === null ? name : `NUMA node ${id}`,
      totalBytes: own.reduce((sum, part) => sum + part.bytes, 0),
      parts: withMissing(ledgerMapParts(own)),
    };
  });
}

/** The plan's memory, above the node's of today where a sample was seen: both in the same parts and words. */
export function ledgerBars(plan: Plan): MapBar[] {
  const bars = barsOf(plan.node, plan.ledger);
  const now = plan.now ? barsOf(plan.node, plan.now.ledger) : [];
  if (now.length !== bars.length) return bars;
  return bars.map((bar, index) => ({ ...bar, ghost: bar.parts, parts: now[index]?.parts ?? [] }));
}
