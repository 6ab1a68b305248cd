import type { Gain, Plan, Verdict } from "@/api/types";
import { pageSizeShort } from "@/lib/page-size";
import { formatChance, formatCount, formatNsInterval, formatPercentChange } from "@/lib/units";

/** What a plan buys that cannot be installed. */
export const NOTHING_FITS = "Nothing: it does not fit";

interface PageChange {
  pageBytes: number;
  /** Null when it is not known. */
  now: number | null;
  planned: number;
}

/** Pages of each size now and as planned, over all NUMA nodes, the smallest size first; also of sizes without a page. */
export function allPageSizes(plan: Plan): PageChange[] {
  const rows = plan.difference
    ? plan.difference.pools.map((pool) => ({ ...pool, planned: pool.planned_pages, now: pool.now_pages }))
    : plan.pools.map((pool) => ({ ...pool, planned: pool.pages, now: pool.present_pages }));
  const sizes = new Map<number, PageChange>();
  for (const { page_bytes: pageBytes, now, planned } of rows) {
    const sum = sizes.get(pageBytes) ?? { pageBytes, now: 0, planned: 0 };
    sum.now = sum.now === null || now === null ? null : sum.now + now;
    sum.planned += planned;
    sizes.set(pageBytes, sum);
  }
  return [...sizes.values()].sort((a, b) => a.pageBytes - b.pageBytes);
}

/** The sizes of which there are pages, or will be. */
export function pageChanges(plan: Plan): PageChange[] {
  return allPageSizes(plan).filter(({ now, planned }) => planned > 0 || (now ?? 0) > 0);
}

/** The gain of each instance at the size the plan chose for it; the best one first. */
function chosenGains(plan: Plan): Gain[] {
  return plan.gains
    .filter((gain) => gain.is_chosen && gain.backing_kind !== "base")
    .sort((a, b) => b.saving_ns_per_operation.likely - a.saving_ns_per_operation.likely);
}

/** The best gain against today: a database that is on huge pages already gains nothing. */
export function bestGain(plan: Plan, verdict: Verdict | null | undefined): Gain | undefined {
  return chosenGains(plan).find(({ instance }) => !verdict?.on_huge_pages?.includes(instance));
}

/**
 * How the risk of a shortage stands to the policy. It may be within it or above it where its range holds the policy: then
 * it is not known, on every page and sheet.
 */
export function riskState({ risk }: Pick<Plan, "risk">): "within" | "above" | "unknown" {
  const { meets_policy: meets, probability, policy } = risk;
  if (meets === true) return "within";
  return meets === false && probability !== null && probability.low > policy ? "above" : "unknown";
}

/** The decisive figures as text, for the sheet and for comparison. */
export function answerTexts(
  plan: Plan,
  verdict: Verdict | null | undefined,
): { change: string; benefit: string; risk: string; confidence: string } {
  const best = bestGain(plan, verdict);
  const { probability, policy } = plan.risk;
  const percent = (ratio: number) => formatPercentChange(ratio - 1);
  const changes = pageChanges(plan).map(
    ({ pageBytes, now, planned }) =>
      `${formatCount(now)} → ${formatCount(planned)} × ${pageSizeShort(pageBytes)}`,
  );
  return {
    change: changes.join(", ") || "no huge pages",
    benefit:
      plan.fits === false
        ? NOTHING_FITS
        : !best
          ? "none"
          : best.measured_here
            ? best.measured_here.text
            : best.speedup
              ? `${percent(best.speedup.likely)} (${percent(best.speedup.low)} to ${percent(best.speedup.high)})`
              : `${formatNsInterval(best.saving_ns_per_operation)} per operation`,
    risk: plan.shortfall
      ? plan.shortfall.reason
      : riskState(plan) === "unknown" || !probability
        ? `unknown, accepted ${formatChance(policy)}`
        : `${formatChance(probability.low)} to ${formatChance(probability.high)}, accepted ${formatChance(policy)}`,
    confidence: verdict?.certainty ?? "unknown",
  };
}
