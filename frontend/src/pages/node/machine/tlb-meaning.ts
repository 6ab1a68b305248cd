import type { GeometrySummary, Penalty } from "@/api/types";
import { isFractured, type TlbPictureModel } from "@/components/tlb-picture/tlb-model";
import { pageSizeShort } from "@/lib/page-size";
import { formatBytes, formatCount, formatNs, formatShare } from "@/lib/units";

function walkNs(penalties: readonly Penalty[], pageBytes: number): number | null {
  return (
    penalties.find((penalty) => penalty.level === "walk" && penalty.page_bytes === pageBytes)?.ns ?? null
  );
}

/** How much shorter a page walk is with a size than with base pages, as measured; null where either is unknown. */
function walkSaving(
  penalties: readonly Penalty[],
  basePageBytes: number,
  pageBytes: number,
): { baseNs: number; ns: number; share: number } | null {
  const [baseNs, ns] = [walkNs(penalties, basePageBytes), walkNs(penalties, pageBytes)];
  return baseNs === null || ns === null || baseNs <= 0 ? null : { baseNs, ns, share: 1 - ns / baseNs };
}

/**
 * What a fractured size buys, from the same penalties that the TLB picture prints: "walks get 33.3 % shorter (30.0 to
 * 20.0 ns); reach does not grow". Null where no size is fractured.
 */
export function fracturedSentence(
  geometry: Pick<GeometrySummary, "effective_granule" | "penalty">,
  basePageBytes: number,
): string | null {
  const fractured = geometry.effective_granule.filter(isFractured);
  const first = fractured.find((granule) => granule.granule_bytes !== null) ?? fractured[0];
  if (!first) return null;
  const size = pageSizeShort(first.page_bytes);
  const covers =
    first.granule_bytes === null ? "less than the page" : `${formatBytes(first.granule_bytes)} of the page`;
  const grows =
    first.granule_bytes === null
      ? "how far reach grows is unknown"
      : first.granule_bytes <= basePageBytes
        ? "reach does not grow"
        : `reach grows to ${formatBytes(first.granule_bytes)} per entry, not to the whole page`;
  const saving = walkSaving(geometry.penalty, basePageBytes, first.page_bytes);
  const walks =
    saving === null
      ? "walks have fewer levels, by how much that shortens them was not measured"
      : saving.share >= 0
        ? `walks get ${formatShare(saving.share)} shorter (${formatNs(saving.baseNs)} to ${formatNs(saving.ns)})`
        : `walks get ${formatShare(-saving.share)} longer (${formatNs(saving.baseNs)} to ${formatNs(saving.ns)})`;
  return `With ${size} pages ${walks}; ${grows}: one entry covers ${covers}.`;
}

/** What the picture means for a buffer pool: how far each size reaches, and what lies beyond it. */
export function tlbMeaning(
  model: TlbPictureModel,
  geometry: Pick<GeometrySummary, "effective_granule" | "penalty">,
  basePageBytes: number,
): string | null {
  const last = model.rows.at(-1);
  if (!last) return null;
  const boxes = last.cells.filter((cell) => cell !== null && cell.reachBytes !== null);
  const base = boxes.find((box) => box?.level.page_bytes === basePageBytes);
  if (!base) return null;
  const walk = walkNs(geometry.penalty, basePageBytes);
  const cost =
    walk === null ? "the page walk, whose cost was not measured" : `${formatNs(walk)} for the page walk`;
  const first = `Random reads over more than ${formatBytes(base.reachBytes)} miss the L${last.level} TLB with ${pageSizeShort(basePageBytes)} pages, and each miss costs ${cost}.`;
  const unknown = last.cells.find(
    (cell) => cell !== null && cell.level.page_bytes > basePageBytes && cell.granuleBytes === null,
  );
  const unmeasured = unknown
    ? ` How far ${pageSizeShort(unknown.level.page_bytes)} pages reach here was not measured.`
    : "";
  const farthest = boxes.reduce((a, b) => ((b?.reachBytes ?? 0) > (a?.reachBytes ?? 0) ? b : a), base);
  if (!farthest || farthest.reachBytes === null || base.reachBytes === null) return first;
  if (farthest.reachBytes <= base.reachBytes)
    return unmeasured ? `${first}${unmeasured}` : `${first} No larger page size reaches further here.`;
  const times = Math.round(farthest.reachBytes / base.reachBytes);
  return `${first} ${pageSizeShort(farthest.level.page_bytes)} pages reach ${formatBytes(farthest.reachBytes)}, ${formatCount(times)} times as far.${unmeasured}`;
}
