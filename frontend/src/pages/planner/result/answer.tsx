import { Anchor, Button } from "@mantine/core";
import { memo } from "react";
import type { Gain, Plan, Verdict } from "@/api/types";
import { RangeBar } from "@/components/charts/range-bar";
import { StateBadge } from "@/components/ui/badges";
import { Term } from "@/components/ui/term";
import { Bytes, Unknown } from "@/components/ui/values";
import { pageSizeShort } from "@/lib/page-size";
import {
  formatBytes,
  formatBytesDelta,
  formatCount,
  formatNsInterval,
  formatNsWithin,
  formatPercentChange,
  formatShare,
} from "@/lib/units";
import classes from "./answer.module.css";
import { freeBytes, overcommitBytes } from "./ledger-parts";
import { planState } from "./plan-state";
import { VERDICTS, VerdictLine } from "./verdict-line";

/** A change that makes the plan fit, taken over into the form. */
export type UseFit = (instance: string, setting: string, value: string) => void;

interface AnswerProps {
  plan: Plan;
  verdict?: Verdict;
  isStale: boolean;
  onUseFit?: UseFit;
}

/** The answer in five lines: decision, change, benefit, risk, certainty. It stays in view while the form scrolls. */
export function Answer({ plan, verdict, isStale, onUseFit }: AnswerProps) {
  return (
    <section
      className={classes.answer}
      aria-label="The answer"
      data-state={verdict ? VERDICTS[verdict.answer].state : planState(plan)}
      data-stale={isStale}
    >
      <AnswerLines plan={plan} verdict={verdict} onUseFit={onUseFit} />
    </section>
  );
}

/** Apart from the frame, so that an answer that grows old turns grey and is not drawn again. */
const AnswerLines = memo(function AnswerLines({
  plan,
  verdict,
  onUseFit,
}: Pick<AnswerProps, "plan" | "verdict" | "onUseFit">) {
  return (
    <>
      <p className={classes.headline} data-testid="plan-headline">
        {plan.headline}
      </p>
      {verdict && <VerdictLine verdict={verdict} />}
      <WouldFit plan={plan} onUseFit={onUseFit} />
      <dl className={classes.cells}>
        <Cell name="Changes">
          <Change plan={plan} />
        </Cell>
        <Cell name={<Term name="gain">Buys</Term>}>
          <Benefit plan={plan} />
        </Cell>
        <Cell name={<Term name="risk">Risks</Term>}>
          <RiskLine plan={plan} />
        </Cell>
        <Cell name={<Term name="confidence">How sure</Term>}>
          <Certainty plan={plan} />
        </Cell>
      </dl>
    </>
  );
});

function Cell({ name, children }: { name: React.ReactNode; children: React.ReactNode }) {
  return (
    <div className={classes.cell}>
      <dt>{name}</dt>
      {children}
    </div>
  );
}

/** What would fit instead, each change one click away. */
function WouldFit({ plan, onUseFit }: Pick<AnswerProps, "plan" | "onUseFit">) {
  const shortfall = plan.shortfall;
  if (!shortfall) return null;
  return (
    <div className={classes.fit}>
      <p>{shortfall.reason}</p>
      <ul>
        {shortfall.options.map(({ text, instance, setting, value }) => (
          <li key={text}>
            {text}{" "}
            {onUseFit && instance && setting && value && (
              <Button size="compact-xs" variant="default" onClick={() => onUseFit(instance, setting, value)}>
                Use {value}
              </Button>
            )}
          </li>
        ))}
      </ul>
    </div>
  );
}

/** Pages of one size now and as planned, over all NUMA nodes; now is null when it is not known. */
export function pageChanges(plan: Plan): { pageBytes: number; now: number | null; planned: number }[] {
  const rows = plan.difference
    ? plan.difference.pools.map((pool) => ({
        pageBytes: pool.page_bytes,
        now: pool.now_pages,
        planned: pool.planned_pages,
      }))
    : plan.pools.map((pool) => ({
        pageBytes: pool.page_bytes,
        now: pool.present_pages,
        planned: pool.pages,
      }));
  const sizes = new Map<number, { pageBytes: number; now: number | null; planned: number }>();
  for (const row of rows) {
    const sum = sizes.get(row.pageBytes) ?? { pageBytes: row.pageBytes, now: 0, planned: 0 };
    sum.now = sum.now === null || row.now === null ? null : sum.now + row.now;
    sum.planned += row.planned;
    sizes.set(row.pageBytes, sum);
  }
  return [...sizes.values()]
    .filter(({ now, planned }) => planned > 0 || (now ?? 0) > 0)
    .sort((a, b) => a.pageBytes - b.pageBytes);
}

function Change({ plan }: { plan: Plan }) {
  const changes = pageChanges(plan);
  const net = plan.net_memory;
  return (
    <>
      {changes.length === 0 && <dd className={classes.big}>No huge pages</dd>}
      {changes.map(({ pageBytes, now, planned }) => (
        <dd key={pageBytes} className={classes.big}>
          {now !== null && `${formatCount(now)} → `}
          <span className="hp-nowrap">
            {formatCount(planned)} × {pageSizeShort(pageBytes)}
          </span>
        </dd>
      ))}
      <dd>
        {changes.some(({ now }) => now === null) && (
          <>
            Now <Unknown why="What the node has reserved today is not known." />.{" "}
          </>
        )}
        {plan.difference?.moves[0]?.replaceAll(" -> ", " → ") ?? (
          <>
            <Bytes value={net.locked_bytes} /> taken from everyone else, {formatBytes(net.idle_bytes)} of it
            idle; net {formatBytesDelta(net.net_bytes)}.
          </>
        )}
      </dd>
    </>
  );
}

/** The gain of each instance at the size the plan chose for it; the best one first. */
export function chosenGains(plan: Plan): Gain[] {
  return plan.gains
    .filter((gain) => gain.is_chosen && gain.backing_kind !== "base")
    .sort((a, b) => b.saving_ns_per_operation.likely - a.saving_ns_per_operation.likely);
}

function Benefit({ plan }: { plan: Plan }) {
  const [best] = chosenGains(plan);
  if (!best) {
    const reserves = plan.pools.some((pool) => pool.pages > 0);
    return (
      <dd className={classes.big}>
        {reserves ? <Unknown why="No gain could be estimated for the chosen page size." /> : "Nothing"}
      </dd>
    );
  }
  const { speedup, saving_ns_per_operation: saving } = best;
  if (!speedup) {
    return (
      <>
        <dd className={classes.big}>{formatNsWithin(saving.likely, saving)} per operation</dd>
        <dd>
          {formatNsInterval(saving)} on {best.instance}. Give its operations per second for a percentage.
        </dd>
      </>
    );
  }
  const percent = (ratio: number) => formatPercentChange(ratio - 1);
  const range = { low: speedup.low - 1, likely: speedup.likely - 1, high: speedup.high - 1 };
  return (
    <>
      <dd className={classes.big}>{percent(speedup.likely)} throughput likely</dd>
      <dd>
        <RangeBar range={range} format={formatPercentChange} />
        {plan.instances.length > 1 && `On ${best.instance}. `}
        {formatBytes(plan.net_memory.returned_page_tables_bytes)} of page tables returned.
      </dd>
    </>
  );
}

function RiskLine({ plan }: { plan: Plan }) {
  const over = overcommitBytes(plan);
  const { probability, policy, basis } = plan.risk;
  if (over > 0)
    return (
      <>
        <dd className={classes.big}>
          <StateBadge state="wrong" text={`${formatBytes(over)} short`} />
        </dd>
        <dd>The plan cannot be in force together with what else runs here.</dd>
      </>
    );
  if (!probability)
    return (
      <>
        <dd className={classes.big}>
          <Unknown why={basis} />
        </dd>
        <dd>{basis}</dd>
      </>
    );
  const upTo = formatShare(probability.high);
  const range = probability.low === probability.high ? upTo : `${formatShare(probability.low)} to ${upTo}`;
  return (
    <>
      <dd className={classes.big}>{formatBytes(freeBytes(plan))} stays free</dd>
      <dd>
        Shortage {range}, {riskVerdict(plan)} {formatShare(policy)}. {tenantsSentence(plan)}
      </dd>
    </>
  );
}

/** How the risk stands to the policy: "within the accepted". */
export function riskVerdict({ risk }: Pick<Plan, "risk">): string {
  if (risk.meets_policy === true) return "within the accepted";
  if (risk.meets_policy === false) return "above the accepted";
  return "which may or may not be within the accepted";
}

function tenantsSentence({ ledger }: Pick<Plan, "ledger">): string {
  return ledger.parts.some(({ kind }) => kind === "tenants")
    ? ""
    : "No other workload is described, so only fixed parts count.";
}

function Certainty({ plan }: { plan: Plan }) {
  const [best] = chosenGains(plan);
  const assumed = [
    ...new Set((best?.inputs ?? []).filter(({ source }) => source === "assumed").map(({ name }) => name)),
  ];
  const unknowns = plan.unknowns.length;
  return (
    <>
      <dd className={classes.big}>{best ? best.confidence : "exact counts"}</dd>
      <dd>
        {assumed.length > 0 &&
          `Assumed: ${assumed.slice(0, 2).join(", ")}${assumed.length > 2 ? " and more" : ""}. `}
        {unknowns > 0 && `${unknowns} ${unknowns === 1 ? "input is" : "inputs are"} unknown. `}
        <Anchor href="#inputs" inherit>
          What it rests on
        </Anchor>
      </dd>
    </>
  );
}

/** A row of the same answer for print and comparison: all of it as text. */
export function answerTexts(plan: Plan): {
  change: string;
  benefit: string;
  risk: string;
  confidence: string;
} {
  const [best] = chosenGains(plan);
  const { probability, policy } = plan.risk;
  const over = overcommitBytes(plan);
  return {
    change:
      pageChanges(plan)
        .map(
          ({ pageBytes, now, planned }) =>
            `${formatCount(now)} → ${formatCount(planned)} × ${pageSizeShort(pageBytes)}`,
        )
        .join(", ") || "no huge pages",
    benefit: !best
      ? "none"
      : best.speedup
        ? `${formatPercentChange(best.speedup.likely - 1)} (${formatPercentChange(best.speedup.low - 1)} to ${formatPercentChange(best.speedup.high - 1)})`
        : `${formatNsInterval(best.saving_ns_per_operation)} per operation`,
    risk:
      over > 0
        ? `${formatBytes(over)} short`
        : probability
          ? `${formatShare(probability.low)} to ${formatShare(probability.high)}, accepted ${formatShare(policy)}`
          : "unknown",
    confidence: best?.confidence ?? "exact counts",
  };
}
