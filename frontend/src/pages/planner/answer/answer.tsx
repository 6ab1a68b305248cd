import { Button } from "@mantine/core";
import { memo, type ReactNode } from "react";
import type { Plan, PlanPreview, Verdict } from "@/api/types";
import { RangeBar } from "@/components/charts/range-bar";
import { type State, StateBadge } from "@/components/ui/badges";
import { Disclosure } from "@/components/ui/disclosure";
import { Term } from "@/components/ui/term";
import { Unknown } from "@/components/ui/values";
import { pageSizeShort } from "@/lib/page-size";
import { formatBytes, formatChance, formatCount, formatNsWithin, formatPercentChange } from "@/lib/units";
import classes from "./answer.module.css";
import { bestGain, NOTHING_FITS, pageChanges, riskState } from "./plan-figures";
import { type ChangeInstance, QuestionField } from "./question-field";
import { planLook, VerdictLine } from "./verdict-line";

interface AnswerProps {
  shown: PlanPreview;
  isStale: boolean;
  /** A setting that makes the plan fit. */
  onUseFit: ChangeInstance;
  /** What was not known of a database's workload. */
  onAnswer: ChangeInstance;
  /** What can be done with the plan. */
  next: ReactNode;
}

/** The answer: decision and verdict, then what it costs, buys and risks, and how sure that is. It stays in view. */
export function Answer({ shown, isStale, next, ...changes }: AnswerProps) {
  return (
    <section
      className={classes.answer}
      aria-label="The answer"
      data-state={planLook(shown.plan, shown.verdict).state}
      data-stale={isStale}
    >
      <AnswerLines shown={shown} {...changes} />
      {next && <div className={classes.next}>{next}</div>}
    </section>
  );
}

/** Apart from the frame, so that an answer that grows old turns grey and is not drawn again. */
const AnswerLines = memo(function AnswerLines({
  shown,
  onUseFit,
  onAnswer,
}: Pick<AnswerProps, "shown" | "onUseFit" | "onAnswer">) {
  const { plan, verdict } = shown;
  const question = verdict.question ?? null;
  const best = bestGain(plan, verdict);
  return (
    <>
      <p className={classes.headline} data-testid="plan-headline">
        {plan.headline}
      </p>
      <VerdictLine plan={plan} verdict={verdict} />
      <WouldFit plan={plan} onUseFit={onUseFit} />
      <dl className={classes.rows}>
        <Row name="Costs" big={<Changes plan={plan} />} lines={verdict.costs ?? []} />
        {(plan.instances.length > 0 || verdict.gains.length > 0) && (
          <Row
            name={<Term name="gain">Buys</Term>}
            big={<Benefit plan={plan} verdict={verdict} />}
            // A predicted gain stands in the line above and needs no sentence; a measured one says when.
            lines={verdict.gains.length > 1 || !best || best.measured_here ? verdict.gains : []}
          />
        )}
        <Row
          name={<Term name="risk">Shortage</Term>}
          big={<Shortage plan={plan} />}
          lines={verdict.shortage ? [verdict.shortage] : []}
        />
        <Row
          name={<Term name="confidence">How sure</Term>}
          big={verdict.certainty === "exact" ? "exact counts" : (verdict.certainty ?? <Unknown />)}
          lines={[]}
        >
          {question && <QuestionField key={question.field} question={question} onAnswer={onAnswer} />}
        </Row>
      </dl>
    </>
  );
});

interface RowProps {
  name: ReactNode;
  big: ReactNode;
  lines: readonly string[];
  children?: ReactNode;
}

/** Lines of a row in view: with twenty databases their gains would fill the first screen. */
const LINES_SHOWN = 6;

function Row({ name, big, lines, children }: RowProps) {
  const shown = lines.length > LINES_SHOWN ? LINES_SHOWN - 2 : lines.length;
  const rest = lines.slice(shown);
  return (
    <div className={classes.row}>
      <dt>{name}</dt>
      <dd className={classes.big}>{big}</dd>
      <dd>
        <Lines lines={lines.slice(0, shown)} />
        {rest.length > 0 && (
          <Disclosure label={`${formatCount(rest.length)} more`}>
            <div>
              <Lines lines={rest} />
            </div>
          </Disclosure>
        )}
        {children}
      </dd>
    </div>
  );
}

function Lines({ lines }: Pick<RowProps, "lines">) {
  return lines.map((line) => (
    <span key={line} className={classes.line}>
      {line}
    </span>
  ));
}

/** What would fit instead, each change one click away. */
function WouldFit({ plan, onUseFit }: Pick<AnswerProps, "onUseFit"> & { plan: Plan }) {
  const { shortfall } = plan;
  if (!shortfall) return null;
  return (
    <ul className={classes.fit}>
      {shortfall.options.map(({ text, instance, setting, value }) => (
        <li key={text}>
          {text}{" "}
          {instance && setting && value && (
            <Button size="compact-xs" variant="default" onClick={() => onUseFit(instance, setting, value)}>
              Use {value}
            </Button>
          )}
        </li>
      ))}
    </ul>
  );
}

function Changes({ plan }: { plan: Plan }) {
  const changes = pageChanges(plan);
  if (changes.length === 0) return "No huge pages";
  return changes.map(({ pageBytes, now, planned }) => (
    <span key={pageBytes} className={classes.line}>
      {now === null ? <Unknown why="What the node has reserved today is not known." /> : formatCount(now)}
      {" → "}
      <span className="hp-nowrap">
        {formatCount(planned)} × {pageSizeShort(pageBytes)}
      </span>
    </span>
  ));
}

function Benefit({ plan, verdict }: { plan: Plan; verdict: Verdict }) {
  if (plan.fits === false) return NOTHING_FITS;
  const best = bestGain(plan, verdict);
  if (!best) {
    // A database that stays on base pages, or is on huge pages already, is as fast as today: that is known.
    const isAsToday = plan.instances.every(
      ({ name, page_bytes: size }) => size === null || verdict.on_huge_pages?.includes(name),
    );
    return isAsToday ? "No speed change" : "Nothing that can be said";
  }
  const { speedup, saving_ns_per_operation: saving } = best;
  if (!speedup) return `${formatNsWithin(saving.likely, saving)} per operation`;
  const range = { low: speedup.low - 1, likely: speedup.likely - 1, high: speedup.high - 1 };
  return (
    <>
      {formatPercentChange(range.likely)} throughput {best.measured_here ? "measured here" : "likely"}
      <RangeBar range={range} format={formatPercentChange} />
    </>
  );
}

const RISKS: Record<ReturnType<typeof riskState>, { state: State; text: (policy: string) => string }> = {
  within: { state: "ok", text: (policy) => `within ${policy}` },
  above: { state: "wrong", text: (policy) => `above ${policy}` },
  unknown: { state: "unknown", text: (policy) => `not known to ${policy} yet` },
};

function Shortage({ plan }: { plan: Plan }) {
  if (plan.shortfall)
    return <StateBadge state="wrong" text={`${formatBytes(plan.shortfall.shortfall_bytes)} short`} />;
  const { state, text } = RISKS[riskState(plan)];
  return <StateBadge state={state} text={text(formatChance(plan.risk.policy))} />;
}
