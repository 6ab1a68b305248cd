import { List, Title } from "@mantine/core";
import type { Gain, Plan } from "@/api/types";
import { IntervalChart } from "@/components/charts/interval-chart";
import { byBacking, curveBacking } from "@/components/curves/curve-series";
import { PageSizeBadge } from "@/components/ui/badges";
import { Disclosure } from "@/components/ui/disclosure";
import { QuestionCard } from "@/components/ui/question-card";
import { StateText } from "@/components/ui/states";
import { Bytes } from "@/components/ui/values";
import { pageSizeColor } from "@/lib/page-size";
import { formatNsInterval, formatNsWithin, formatRatio } from "@/lib/units";
import { chosenGains } from "./answer";

/** What each page size would buy each database, as ranges. */
export function GainsCard({ plan }: { plan: Plan }) {
  const all = [...plan.gains].filter((gain) => gain.backing_kind !== "base").sort(byBacking);
  const instances = [...new Set(all.map((gain) => gain.instance))];
  return (
    <QuestionCard
      title={gainsTitle(plan)}
      description="Time saved per operation against base pages. The bar is the range, the mark its most likely value."
    >
      {instances.length === 0 && (
        <StateText>
          No gain could be estimated. A benchmark run of the node, or its processor in the catalogue, is
          needed.
        </StateText>
      )}
      {instances.map((instance) => {
        const gains = all.filter((gain) => gain.instance === instance);
        return (
          <div key={instance}>
            {instances.length > 1 && <Title order={3}>{instance}</Title>}
            <IntervalChart
              title={`Saving per operation of ${instance} by page size`}
              nameHeader="Page size"
              valueHeader="Saving"
              extraHeaders={["Speedup", "Page tables"]}
              format={(ns, range) => formatNsWithin(ns, range)}
              formatInterval={formatNsInterval}
              rows={gains.map((gain) => ({
                key: gain.backing,
                name: (
                  <div className="hp-nowrap">
                    <PageSizeBadge pageBytes={gain.page_bytes} kind={curveBacking(gain)} />
                    {gain.is_chosen && <strong> chosen</strong>}
                    <div className="hp-dim hp-small">{gain.confidence} confidence</div>
                  </div>
                ),
                range: gain.saving_ns_per_operation,
                color: pageSizeColor(gain.page_bytes, curveBacking(gain)),
                detail: gain.statement,
                extra: [
                  gain.speedup
                    ? `${formatRatio(gain.speedup.low)} to ${formatRatio(gain.speedup.high)}`
                    : "needs load",
                  <Bytes key="pt" value={gain.page_tables_bytes} />,
                ],
              }))}
            />
            <Statements gains={gains} />
          </div>
        );
      })}
    </QuestionCard>
  );
}

function gainsTitle(plan: Plan): string {
  const [chosen] = chosenGains(plan).filter((gain) => gain.backing_kind !== "base");
  const best =
    chosen ??
    plan.gains.reduce<Gain | null>(
      (a, b) => (a === null || b.saving_ns_per_operation.likely > a.saving_ns_per_operation.likely ? b : a),
      null,
    );
  if (!best) return "What would each page size buy?";
  if (best.saving_ns_per_operation.likely <= 0)
    return "No page size is likely to make an operation faster here.";
  const saving = best.saving_ns_per_operation;
  const what = best.backing === "THP" ? "THP" : `${best.backing} pages`;
  return `${what} would save ${best.instance} about ${formatNsWithin(saving.likely, saving)} per operation.`;
}

function Statements({ gains }: { gains: readonly Gain[] }) {
  return (
    <Disclosure label="How these numbers come about">
      <List size="sm" spacing={6}>
        {gains.map((gain) => (
          <List.Item key={gain.backing}>
            {gain.statement}{" "}
            <span className="hp-dim">
              {gain.inputs.map((term) => `${term.name} ${term.value} (${term.source})`).join("; ")}
            </span>
          </List.Item>
        ))}
      </List>
    </Disclosure>
  );
}
