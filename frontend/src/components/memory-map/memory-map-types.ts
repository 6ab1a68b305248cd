import type { Source } from "@/components/ui/badges";

/** A nested fill inside a part: how much of a pool is used, idle, and so on. */
interface MapFill {
  label: string;
  bytes: number;
  look: "used" | "idle" | "reserved";
}

/** One part of a node's memory, in drawing order. */
export interface MapPart {
  key: string;
  label: string;
  bytes: number;
  color: string;
  source: Source;
  /** `pool` hints its page grid, `free` is an outline, `unknown` is hatched, `missing` is memory that there is not. */
  look: "solid" | "pool" | "slack" | "free" | "unknown" | "missing";
  pageBytes?: number;
  fills?: readonly MapFill[];
  detail?: string;
}

/** A node, or one NUMA node, as one bar to scale. */
export interface MapBar {
  key: string;
  label: string;
  totalBytes: number;
  parts: readonly MapPart[];
  /** The plan, drawn above reality. */
  ghost?: readonly MapPart[];
}

/** Drawing order of the parts of memory, by the first word of their key. */
const ORDER = [
  "kernel",
  "unaccounted",
  "system_reserved",
  "kube_reserved",
  "eviction",
  "in_use",
  "tenants",
  "processes",
  "unknown",
  "engine_private",
  "page_tables",
  "page_cache",
  "reclaimable",
  "pool",
  "pool_slack",
  "ordinary",
  "free",
  "missing",
];

/** What the bar is drawn to: all of memory, and what a plan asks for beyond it. */
export function drawnBytes({ totalBytes, parts, ghost = [] }: MapBar): number {
  const missing = (drawn: readonly MapPart[]) =>
    drawn.filter(({ look }) => look === "missing").reduce((sum, { bytes }) => sum + bytes, 0);
  return totalBytes + Math.max(missing(parts), missing(ghost));
}

/** Sorts parts as they are drawn; pools of a smaller page size come first. */
export function compareParts(
  a: Pick<MapPart, "key" | "pageBytes">,
  b: Pick<MapPart, "key" | "pageBytes">,
): number {
  const rank = (key: string) => ORDER.indexOf(key.split(":")[0] ?? "");
  return rank(a.key) - rank(b.key) || (a.pageBytes ?? 0) - (b.pageBytes ?? 0);
}
