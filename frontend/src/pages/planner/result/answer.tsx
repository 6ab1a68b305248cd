import type { Gain, Plan } from "@/api/types";
import { StateBadge } from "@/components/ui/badges";
import { Bytes, Pages, Unknown } from "@/components/ui/values";
import {
  formatBytes,
  formatBytesDelta,
  formatNsInterval,
  formatNsWithin,
  formatRatio,
  formatShare,
} from "@/lib/units";
import classes from "./answer.module.css";
import { overcommitBytes } from "./ledger-parts";

/** What to do, what it costs, what it buys, how sure: in this order. */
export function Answer({ plan }: { plan: Plan }) {
  return (
    <section className={classes.answer} aria-label="The plan in one line">
      <p className={classes.headline} data-testid="plan-headline">
        {plan.headline}
      </p>
      <dl className={classes.cells}>
        <div className={classes.cell}>
          <dt>Reserve</dt>
          <Reserve plan={plan} />
        </div>
        <div className={classes.cell}>
          <dt>What it costs</dt>
          <Cost plan={plan} />
        </div>
        <div className={classes.cell}>
          <dt>What it buys</dt>
          <Buys plan={plan} />
        </div>
        <div className={classes.cell}>
          <dt>How sure</dt>
          <Sure plan={plan} />
        </div>
      </dl>
    </section>
  );
}

function Reserve({ plan }: { plan: Plan }) {
  const bySize = new Map<number, number>();
  for (const pool of plan.pools) bySize.set(pool.page_bytes, (bySize.get(pool.page_bytes) ?? 0) + pool.pages);
  const sizes = [...bySize.entries()].filter(([, pages]) => pages > 0).sort(([a], [b]) => a - b);
  if (sizes.length === 0) return <dd className={classes.big}>No huge pages</dd>;
  return sizes.map(([pageBytes, pages]) => (
    <dd key={pageBytes} className={classes.big}>
      <Pages count={pages} pageBytes={pageBytes} />
    </dd>
  ));
}

function Cost({ plan }: { plan: Plan }) {
  const net = plan.net_memory;
  const over = overcommitBytes(plan);
  return (
    <>
      <dd className={classes.big}>
        <Bytes value={net.locked_bytes} /> locked
      </dd>
      <dd>
        {formatBytes(net.idle_bytes)} of it idle, {formatBytes(net.returned_page_tables_bytes)} of page tables
        returned. Net {formatBytesDelta(net.net_bytes)}.
      </dd>
      {over > 0 && (
        <dd>
          <StateBadge state="wrong" text={`Does not fit by ${formatBytes(over)}`} />
        </dd>
      )}
    </>
  );
}

/** The gain of each instance at the size the plan chose for it; the best one first. */
export function chosenGains(plan: Plan): Gain[] {
  return plan.gains
    .filter((gain) => gain.is_chosen && gain.backing_kind !== "base")
    .sort((a, b) => b.saving_ns_per_operation.likely - a.saving_ns_per_operation.likely);
}

function Buys({ plan }: { plan: Plan }) {
  const [best] = chosenGains(plan);
  if (!best) {
    return plan.pools.some((pool) => pool.pages > 0) ? (
      <dd className={classes.big}>
        <Unknown why="No gain could be estimated for the chosen page size." />
      </dd>
    ) : (
      <dd className={classes.big}>Nothing</dd>
    );
  }
  const saving = best.saving_ns_per_operation;
  return (
    <>
      <dd className={classes.big}>{formatNsWithin(saving.likely, saving)} an operation</dd>
      <dd>
        {formatNsInterval(saving)} on {best.instance}
        {best.speedup
          ? `, ${formatRatio(best.speedup.low)} to ${formatRatio(best.speedup.high)}.`
          : ". Give its operations a second for a percentage."}
      </dd>
    </>
  );
}

function Sure({ plan }: { plan: Plan }) {
  const { risk } = plan;
  const [best] = chosenGains(plan);
  return (
    <>
      <dd className={classes.big}>
        {risk.probability ? (
          <>{formatShare(risk.probability.likely)} risk of running out</>
        ) : (
          <>
            Risk <Unknown why={risk.basis} />
          </>
        )}
      </dd>
      <dd>
        {riskSentence(plan)}
        {best && `Confidence in the gain: ${best.confidence}. `}
        {plan.unknowns.length > 0 &&
          `${plan.unknowns.length} unknown${plan.unknowns.length === 1 ? "" : "s"}, listed below.`}
      </dd>
    </>
  );
}

/** How the risk stands to the policy; without tenants, that there was nobody to run out of memory. */
export function riskSentence({ ledger, risk }: Pick<Plan, "ledger" | "risk">): string {
  const { probability, meets_policy: meets, policy } = risk;
  if (!probability) return "";
  if (probability.high === 0 && !ledger.parts.some(({ kind }) => kind === "tenants"))
    return "No tenant is described, so only fixed parts count. ";
  const upTo = probability.high > probability.likely ? `Up to ${formatShare(probability.high)}. ` : "";
  if (meets === true) return `${upTo}Within the accepted ${formatShare(policy)}. `;
  if (meets === false) return `${upTo}Above the accepted ${formatShare(policy)}. `;
  return `${upTo}Whether that is within the accepted ${formatShare(policy)} is open. `;
}
