import type { Disagreement, Granule, Penalty, TlbLevel } from "@/api/types";
import { bestLevels, isDataLevel } from "@/components/curves/curve-series";
import type { Source } from "@/components/ui/badges";
import { pageSizeShort } from "@/lib/page-size";
import { formatBytes, formatCount } from "@/lib/units";

/** One box of the picture: a level's entries for one page size. */
export interface TlbBox {
  level: TlbLevel;
  /** Share of the column's width, by the logarithm of the entries; null when they are unknown. */
  width: number | null;
  /** What all entries together cover: entries times what one of them covers here, which is less than a fractured page. */
  reachBytes: number | null;
  /** What one entry covers; null where the size, or a smaller one, is fractured and nobody knows how finely. */
  granuleBytes: number | null;
  source: Source;
  penalty: Penalty | null;
  disagrees: Disagreement | null;
}

interface TlbRow {
  level: number;
  kind: string;
  label: string;
  /** One cell per page size of the picture; null where nothing is listed for the level and the size. */
  cells: (TlbBox | null)[];
  /** Whether a size that is not listed has no entries: CPUID and the catalogue list all sizes, a measurement does not. */
  isListedWhole: boolean;
}

export interface TlbPictureModel {
  pageSizes: number[];
  rows: TlbRow[];
  fractured: Granule[];
}

const SOURCES: readonly string[] = ["measured", "cpuid", "catalogue", "assumed", "given", "computed"];

export function sourceOf(source: string | null): Source {
  return source !== null && SOURCES.includes(source) ? (source as Source) : "unknown";
}

const KINDS = new Map([
  ["data", "data"],
  ["unified", "unified"],
  ["load", "loads"],
  ["store", "stores"],
  ["instr", "instructions"],
]);

export function kindLabel(kind: string): string {
  return KINDS.get(kind) ?? kind;
}

/** Ways for a reader: 6 -> "6-way", "full" -> "fully associative". */
export function waysLabel(ways: TlbLevel["ways"]): string | null {
  if (ways === null) return null;
  if (ways === "full") return "fully associative";
  return `${ways}-way`;
}

/** The backing under which a page of this size is cut up by the host. */
export function isFractured(granule: Granule): boolean {
  return granule.status === "fractured";
}

/** One sentence about a cut-up page size. */
export function fractureSentence(granule: Granule): string {
  const name =
    granule.backing_kind === "thp" || granule.backing.toUpperCase() === "THP" ? "THP" : "huge pages";
  if (granule.granule_bytes === null) {
    return `${pageSizeShort(granule.page_bytes)} ${name}: one TLB entry covers less than the page here. How much is unknown.`;
  }
  return (
    `${pageSizeShort(granule.page_bytes)} ${name}: one TLB entry covers ${formatBytes(granule.granule_bytes)} here, ` +
    "not the whole page. The host backs this guest with smaller pages, so the TLB reach of the page size is not there."
  );
}

/** Which penalty a level's misses pay: an L1 miss pays the L2 hit, a last-level miss the walk. */
function penaltyOf(penalties: readonly Penalty[], level: TlbLevel, lastLevel: number): Penalty | null {
  const paid = level.level >= lastLevel ? "walk" : "l2_hit";
  return penalties.find((entry) => entry.level === paid && entry.page_bytes === level.page_bytes) ?? null;
}

/** Lays the data side of a geometry out as rows of levels and columns of page sizes. */
export function tlbPicture(input: {
  levels: readonly TlbLevel[];
  granules: readonly Granule[];
  penalties: readonly Penalty[];
  disagreements: readonly Disagreement[];
}): TlbPictureModel {
  const levels = bestLevels(input.levels).filter(isDataLevel);
  const pageSizes = [...new Set(levels.map((level) => level.page_bytes))].sort((a, b) => a - b);
  const most = Math.max(2, ...levels.map((level) => level.entries ?? 0));
  const lastLevel = Math.max(0, ...levels.map((level) => level.level));
  const fractured = input.granules.filter(isFractured);
  const granuleOf = (pageBytes: number) => {
    const found = fractured.find((granule) => granule.page_bytes === pageBytes);
    if (found) return found.granule_bytes;
    // Where the host cuts up a smaller page, nobody knows what it does to a larger one until that is measured.
    const isMeasured = input.granules.some(
      (granule) => granule.page_bytes === pageBytes && granule.granule_bytes !== null,
    );
    return isMeasured || !fractured.some((granule) => granule.page_bytes < pageBytes) ? pageBytes : null;
  };
  const keys = [...new Set(levels.map((level) => `${level.level}:${level.kind}`))].sort();
  const rows = keys.map((key) => {
    const [levelText = "1", kind = "data"] = key.split(":");
    const number = Number(levelText);
    const listed = input.levels.filter((level) => level.level === number && level.kind === kind);
    return {
      level: number,
      kind,
      label: `L${levelText} ${kindLabel(kind)}`,
      isListedWhole: listed.some(({ source }) => source === "cpuid" || source === "catalogue"),
      cells: pageSizes.map((pageBytes): TlbBox | null => {
        const found = levels.find(
          (level) => level.level === number && level.kind === kind && level.page_bytes === pageBytes,
        );
        if (!found) return null;
        const granuleBytes = granuleOf(pageBytes);
        return {
          level: found,
          granuleBytes,
          width: found.entries ? Math.log2(found.entries + 1) / Math.log2(most + 1) : null,
          reachBytes: found.entries === null || granuleBytes === null ? null : found.entries * granuleBytes,
          source: sourceOf(found.source),
          penalty: penaltyOf(input.penalties, found, lastLevel),
          disagrees:
            input.disagreements.find((entry) => entry.level === number && entry.page_bytes === pageBytes) ??
            null,
        };
      }),
    };
  });
  return { pageSizes, rows, fractured };
}

/** Entries with their interval when the measurement gave one: "96 (95 to 97)". */
export function entriesText(level: TlbLevel): string {
  const { entries, entries_min: low, entries_max: high } = level;
  const interval =
    low !== null && high !== null && low !== high ? ` (${formatCount(low)} to ${formatCount(high)})` : "";
  return `${formatCount(entries)}${interval}`;
}
