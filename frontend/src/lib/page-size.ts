import { type TokenName, token } from "@/theme/tokens";
import { formatCount, GIB, KIB, MIB, NBSP, UNKNOWN } from "./units";

// The one rule for sizes in the dashboard. A page size is a name and is written as the kernel and the server's texts
// write it: 4K, 2M, 1G. An amount of memory is a quantity and is written in KiB, MiB and GiB, whatever it consists of:
// "4,268 × 2M (8.34 GiB)". What a shell, an engine or Kubernetes takes is written as that program spells it.

/** How memory is backed: base pages, transparent huge pages, or the kernel's huge page pool. */
export type BackingKind = "base" | "thp" | "hugetlb";

/** Hues at known sizes; between them a size is mixed in proportion to its logarithm. */
const ANCHORS: readonly { bytes: number; token: TokenName }[] = [
  { bytes: 4 * KIB, token: "page-4k" },
  { bytes: 2 * MIB, token: "page-2m" },
  { bytes: GIB, token: "page-1g" },
  { bytes: 16 * GIB, token: "page-16g" },
];

/** The hue of a page size, as a CSS colour. The same everywhere: charts, badges, ledger and tables. */
export function pageSizeColor(pageBytes: number, kind: BackingKind): string {
  if (kind === "base") return token("page-4k");
  if (kind === "thp") return token("page-thp");
  const exact = ANCHORS.find((anchor) => anchor.bytes === pageBytes);
  if (exact) return token(exact.token);
  const above = ANCHORS.findIndex((anchor) => anchor.bytes > pageBytes);
  const high = ANCHORS[above];
  const low = ANCHORS[above - 1];
  if (above < 0 || !high) return token("page-16g");
  if (!low) return token("page-4k");
  const position = Math.log2(pageBytes / low.bytes) / Math.log2(high.bytes / low.bytes);
  return `color-mix(in oklch, ${token(high.token)} ${Math.round(position * 100)}%, ${token(low.token)})`;
}

/** The kernel's short word for a size: "4K", "2M", "1G". */
export function pageSizeShort(pageBytes: number): string {
  if (pageBytes >= GIB && pageBytes % GIB === 0) return `${pageBytes / GIB}G`;
  if (pageBytes >= MIB && pageBytes % MIB === 0) return `${pageBytes / MIB}M`;
  return `${Math.round(pageBytes / KIB)}K`;
}

/** Pages of a size: (4244, 2 MiB) -> "4,244 × 2M". */
export function formatPages(pages: number | null | undefined, pageBytes: number): string {
  if (pages === null || pages === undefined || !Number.isFinite(pages)) return UNKNOWN;
  return `${formatCount(pages)}${NBSP}×${NBSP}${pageSizeShort(pageBytes)}`;
}

/** What a backing is called in text: "2M pages", "THP (2M)", "4K base pages". */
export function backingLabel(kind: BackingKind, pageBytes: number): string {
  if (kind === "base") return `${pageSizeShort(pageBytes)} base pages`;
  if (kind === "thp") return `THP (${pageSizeShort(pageBytes)})`;
  return `${pageSizeShort(pageBytes)} pages`;
}

const KIND_ORDER: Record<BackingKind, number> = { base: 0, thp: 1, hugetlb: 2 };

/** The one order of page sizes: base pages, then transparent huge pages, then pools by size. */
export function comparePageSizes(
  a: { kind: BackingKind; pageBytes: number | null },
  b: { kind: BackingKind; pageBytes: number | null },
): number {
  return KIND_ORDER[a.kind] - KIND_ORDER[b.kind] || (a.pageBytes ?? 0) - (b.pageBytes ?? 0);
}

/** Which kind of backing a page size is on a node, when only the size is known. */
export function backingKindOf(pageBytes: number, basePageBytes: number | null | undefined): BackingKind {
  return pageBytes <= (basePageBytes ?? 4 * KIB) ? "base" : "hugetlb";
}
