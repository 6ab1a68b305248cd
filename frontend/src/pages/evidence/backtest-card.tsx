import type { Backtest, BacktestRow } from "@/api/types";
import { IntervalChart } from "@/components/charts/interval-chart";
import { StateBadge } from "@/components/ui/badges";
import { Hint } from "@/components/ui/hint";
import { QuestionCard } from "@/components/ui/question-card";
import { Table } from "@/components/ui/table";
import { TableScroll } from "@/components/ui/table-scroll";
import { Term } from "@/components/ui/term";
import { formatPercentChange } from "@/lib/units";
import { token } from "@/theme/tokens";
import classes from "./backtest-card.module.css";
import {
  type BacktestGroup,
  backtestGroups,
  PARTS,
  type PredictedRow,
  partTitle,
  reasonsOf,
} from "./backtest-groups";
import { SourceLink, sourceUrl } from "./source-link";

const percent = (value: number) => formatPercentChange(value / 100);

/** Predicted beside published, a card per kind of result, so that buffer-size curves do not prop up databases. */
export function BacktestCards({ backtest }: { backtest: Backtest }) {
  return (
    <>
      {PARTS.map(({ group, what, description }) => {
        const items = backtest.items.filter((row) => row.group === group);
        return items.length === 0 ? null : (
          <BacktestCard key={group} items={items} title={partTitle(items, what)} description={description} />
        );
      })}
    </>
  );
}

interface BacktestCardProps {
  items: readonly BacktestRow[];
  title: string;
  description: string;
}

/** One kind of results, by source; sources with a miss come first and are open. */
function BacktestCard({ items, title, description }: BacktestCardProps) {
  const groups = backtestGroups(items);
  const count = (key: "byTolerance" | "outside" | "unexplained" | "unpredicted") =>
    groups.reduce((sum, group) => sum + group[key].length, 0);
  return (
    <QuestionCard
      title={title}
      description={
        <>
          {description} {count("byTolerance")} lie within a point of the range,{" "}
          {count("outside") + count("unexplained")} lie <Term name="backtest">outside</Term>,{" "}
          {count("unexplained")} of these stay unexplained, {count("unpredicted")} have no prediction. Bar:
          predicted range with its most likely value; diamond: what was published. Each source has its own
          scale. No parameter is fitted to these rows.
        </>
      }
    >
      <div>
        {groups.map((group) => (
          <Group key={group.source} group={group} />
        ))}
      </div>
    </QuestionCard>
  );
}

function Group({ group }: { group: BacktestGroup }) {
  const { source, inside, byTolerance, outside, unexplained, unpredicted } = group;
  const held = [...inside, ...byTolerance];
  const misses = [...unexplained, ...outside];
  return (
    <details className={classes.group} open={misses.length > 0}>
      <summary className={classes.summary}>
        <span className={classes.source}>{source}</span>
        <span className={classes.counts}>
          {unexplained.length > 0 && <StateBadge state="wrong" text={`${unexplained.length} unexplained`} />}
          {outside.length > 0 && <StateBadge state="attention" text={`${outside.length} outside`} />}
          {byTolerance.length > 0 && (
            <StateBadge state="unknown" text={`${byTolerance.length} within a point`} />
          )}
          {inside.length > 0 && <StateBadge state="ok" text={`${inside.length} inside`} />}
          {unpredicted.length > 0 && (
            <StateBadge state="unknown" text={`${unpredicted.length} without a prediction`} />
          )}
        </span>
      </summary>
      <div className={classes.body}>
        {sourceUrl(source) !== null && (
          <p className={classes.reason}>
            <SourceLink source={source}>Read the source</SourceLink>
          </p>
        )}
        {misses.length > 0 && <Predicted rows={misses} title={`Not inside the predicted range: ${source}`} />}
        {reasonsOf(misses).map((reason) => (
          <p key={reason} className={classes.reason}>
            Not explained: {reason}.
          </p>
        ))}
        {held.length > 0 && (
          <Folded
            fold={misses.length > 0}
            title={`${held.length} inside the predicted range or within a point`}
          >
            <Predicted rows={held} title={`Inside the predicted range or within a point: ${source}`} />
          </Folded>
        )}
        {unpredicted.length > 0 && (
          <Folded fold={misses.length + held.length > 0} title={`${unpredicted.length} without a prediction`}>
            <Unpredicted rows={unpredicted} source={source} />
          </Folded>
        )}
      </div>
    </details>
  );
}

/** The rest of a group, behind a line of its own when something more important stands above it. */
function Folded({ fold, title, children }: { fold: boolean; title: string; children: React.ReactNode }) {
  if (!fold) return <>{children}</>;
  return (
    <details>
      <summary className={classes.fold}>{title}</summary>
      {children}
    </details>
  );
}

function verdict({ status, is_wide }: BacktestRow) {
  if (status === "inside") return <StateBadge state="ok" text={is_wide ? "Inside a wide range" : "Inside"} />;
  if (status === "by_tolerance") return <StateBadge state="unknown" text="Within a point" />;
  if (status === "unexplained") return <StateBadge state="wrong" text="Unexplained" />;
  return <StateBadge state="attention" text="Outside" />;
}

function Predicted({ rows, title }: { rows: readonly PredictedRow[]; title: string }) {
  return (
    <IntervalChart
      compact
      title={title}
      nameHeader="Result"
      valueHeader="Gain"
      extraHeaders={["Published", "Verdict"]}
      format={percent}
      rows={rows.map((row) => ({
        key: row.id,
        name: <RowName row={row} />,
        range: row.predicted_percent,
        color: row.status === "inside" ? token("accent") : token("state-attention"),
        mark: row.published_percent,
        detail: row.reason ?? `${row.source}: published ${row.published}`,
        extra: [percent(row.published_percent), verdict(row)],
      }))}
    />
  );
}

function RowName({ row }: { row: BacktestRow }) {
  const name = row.workload ?? row.system ?? row.id;
  return (
    <span className={classes.name}>
      {/* Cut to a line by its style; the published table beneath has it whole. */}
      <span className={classes.workload}>
        <Hint label={name} disabled={name.length < 40}>
          {name}
        </Hint>
      </span>
      <span className={classes.sizes}>{[row.page_size_a, row.page_size_b].filter(Boolean).join(" to ")}</span>
    </span>
  );
}

function Unpredicted({ rows, source }: { rows: readonly BacktestRow[]; source: string }) {
  return (
    <TableScroll label={`Without a prediction: ${source}`} minWidth={640}>
      <Table verticalSpacing={3} className={classes.unpredicted}>
        <Table.Thead>
          <Table.Tr>
            <Table.Th>Result</Table.Th>
            <Table.Th>Published</Table.Th>
            <Table.Th>Why there is no prediction</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {rows.map((row) => (
            <Table.Tr key={row.id}>
              <Table.Th scope="row" fw={400}>
                <RowName row={row} />
              </Table.Th>
              <Table.Td className={classes.published}>{row.published}</Table.Td>
              <Table.Td>{row.reason ?? row.status.replaceAll("_", " ")}</Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </TableScroll>
  );
}
