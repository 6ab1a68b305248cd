import { MultiSelect } from "@mantine/core";
import { useQueries, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { planPreviewQuery, savedPlanQuery } from "@/api/plans";
import { asApiError } from "@/api/problem";
import { scenarioQuery, scenariosQuery } from "@/api/scenarios";
import type { Plan, PlanInForce, Scenario, Verdict } from "@/api/types";
import { QuestionCard } from "@/components/ui/question-card";
import { ErrorState } from "@/components/ui/states";
import { Table } from "@/components/ui/table";
import { TableScroll } from "@/components/ui/table-scroll";
import { Unknown } from "@/components/ui/values";
import { pageSizeShort } from "@/lib/page-size";
import { formatBytes, formatCount } from "@/lib/units";
import { allPageSizes, answerTexts, pageChanges } from "../answer/plan-figures";
import classes from "./compare-card.module.css";

const MOST_OTHERS = 3;

/** A plan with what the service says of it. */
interface Planned {
  plan: Plan;
  verdict: Verdict | null;
}

interface CompareCardProps {
  shown: Planned;
  base: Scenario | null;
  isDirty: boolean;
  nodeId: string | null;
  /** What the node is meant to have today; null where nobody said so. */
  inForce: PlanInForce | null;
}

interface Column {
  name: string;
  /** Pages by size, where nothing else is known of a plan. */
  pages?: ReadonlyMap<number, number>;
  /** Null while it is computed; a text says why there is none. */
  shown: Planned | null;
  why?: string;
}

/** Pages of each size over all NUMA nodes. */
export function pagesInForce({ pools }: Pick<PlanInForce, "pools">): Map<number, number> {
  const pages = new Map<number, number>();
  for (const pool of pools) pages.set(pool.page_bytes, (pages.get(pool.page_bytes) ?? 0) + pool.pages);
  return pages;
}

/** The plan beside the node as it is, the plan in force, the scenario as it was saved, and other saved scenarios. */
export function CompareCard({ shown, base, isDirty, nodeId, inForce }: CompareCardProps) {
  const [ids, choose] = useState<string[]>([]);
  const list = useQuery(scenariosQuery());
  const others = [...(base && isDirty ? [base.id] : []), ...ids];
  const scenarios = useQueries({ queries: others.map((id) => scenarioQuery(id)) });
  const plans = useQueries({
    // Compared on the same node, so that only what the scenarios say differs.
    queries: scenarios.map(({ data }) =>
      planPreviewQuery(data ? { nodeId: nodeId ?? data.node_id, scenario: data.scenario } : null),
    ),
  });
  const planInForce = useQuery({
    ...savedPlanQuery(inForce?.plan_id ?? ""),
    enabled: inForce?.plan_id != null,
  });
  const columns: Column[] = [
    { name: "This plan", shown },
    ...(inForce
      ? [
          {
            name: "Plan in force",
            shown: planInForce.data ?? null,
            pages: pagesInForce(inForce),
            why:
              inForce.plan_id === null
                ? "Only its pages are known: it was not saved here."
                : planInForce.isError
                  ? asApiError(planInForce.error).title
                  : undefined,
          },
        ]
      : []),
    ...others.map((id, index) => ({
      name: id === base?.id ? `${base.name}, as saved` : (scenarios[index]?.data?.name ?? "Loading"),
      shown: plans[index]?.data ?? null,
      why: plans[index]?.isError
        ? (asApiError(plans[index].error).detail ?? undefined)
        : scenarios[index]?.isError
          ? asApiError(scenarios[index].error).title
          : undefined,
    })),
  ];
  return (
    <QuestionCard
      title="How does it compare?"
      description="Differences to this plan are marked. All are computed for the node that is chosen above."
      actions={
        <MultiSelect
          aria-label="Saved scenarios to compare with"
          placeholder={ids.length === 0 ? "Up to three saved scenarios" : undefined}
          data={(list.data?.items ?? [])
            .filter(({ id }) => id !== base?.id)
            .map(({ id, name }) => ({ value: id, label: name }))}
          value={ids}
          onChange={choose}
          maxValues={MOST_OTHERS}
          searchable
          w={300}
        />
      }
    >
      {list.isError && <ErrorState error={list.error} onRetry={() => void list.refetch()} bare />}
      <TableScroll label="Plans side by side" minWidth={260 + 170 * (columns.length + 1)}>
        <Table verticalSpacing={6}>
          <Table.Thead>
            <Table.Tr>
              <Table.Td />
              <Table.Th>Now</Table.Th>
              {columns.map(({ name }) => (
                <Table.Th key={name}>{name}</Table.Th>
              ))}
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {comparisonRows(columns, shown.plan).map(({ name, now, values }) => (
              <Table.Tr key={name}>
                <Table.Th scope="row" fw={400}>
                  {name}
                </Table.Th>
                <Table.Td>{now ?? ""}</Table.Td>
                {values.map((value, index) => (
                  <Table.Td
                    key={columns[index]?.name}
                    className={
                      index > 0 && value !== null && value !== values[0] ? classes.differs : undefined
                    }
                  >
                    {value ?? <Unknown why={columns[index]?.why ?? "Being computed."} />}
                  </Table.Td>
                ))}
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </TableScroll>
    </QuestionCard>
  );
}

interface ComparisonRow {
  name: string;
  now: string | null;
  values: (string | null)[];
}

/** Memory in pools today; a word where a count is not known. */
function poolsNow(plan: Plan): string {
  const changes = pageChanges(plan);
  if (changes.some(({ now }) => now === null)) return "unknown";
  return formatBytes(changes.reduce((sum, { pageBytes, now }) => sum + pageBytes * (now ?? 0), 0));
}

/** The decisive figures as rows, one column per plan; `today` is the plan whose node is shown as it is now. */
export function comparisonRows(
  columns: readonly Pick<Column, "shown" | "pages">[],
  today: Plan,
): ComparisonRow[] {
  const row = (name: string, now: string | null, of: (shown: Planned) => string): ComparisonRow => ({
    name,
    now,
    values: columns.map(({ shown }) => (shown ? of(shown) : null)),
  });
  const texts = ({ plan, verdict }: Planned) => answerTexts(plan, verdict);
  const sizes = [
    ...new Set(
      columns.flatMap(({ shown, pages: known }) =>
        shown ? pageChanges(shown.plan).map(({ pageBytes }) => pageBytes) : [...(known?.keys() ?? [])],
      ),
    ),
  ].sort((a, b) => a - b);
  const pages = (of: Plan, pageBytes: number) =>
    pageChanges(of).find((change) => change.pageBytes === pageBytes);
  return [
    ...sizes.map((pageBytes) => ({
      name: `Pages of ${pageSizeShort(pageBytes)}`,
      // Another plan may be of a size of which there is no page today: that is zero, and known.
      now: formatCount(allPageSizes(today).find((change) => change.pageBytes === pageBytes)?.now),
      values: columns.map(({ shown, pages: known }) =>
        shown
          ? formatCount(pages(shown.plan, pageBytes)?.planned ?? 0)
          : known
            ? formatCount(known.get(pageBytes) ?? 0)
            : null,
      ),
    })),
    row("Memory in pools", poolsNow(today), ({ plan }) => formatBytes(plan.net_memory.locked_bytes)),
    row("Idle in pools", null, ({ plan }) => formatBytes(plan.net_memory.idle_bytes)),
    row("Available to programs", formatBytes(today.now?.available_bytes ?? null), ({ plan, verdict }) =>
      plan.shortfall
        ? `${formatBytes(plan.shortfall.shortfall_bytes)} short`
        : formatBytes(verdict?.available_planned_bytes ?? null),
    ),
    row("Gain, likely (range)", "0 %", (of) => texts(of).benefit),
    row("Risk of shortage", null, (of) => texts(of).risk),
    row("How sure", null, (of) => texts(of).confidence),
  ];
}
