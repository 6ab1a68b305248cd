import type { Gain, Plan } from "@/api/types";
import { IntervalChart } from "@/components/charts/interval-chart";
import { PageSizeBadge } from "@/components/ui/badges";
import { QuestionCard } from "@/components/ui/question-card";
import { StateText } from "@/components/ui/states";
import { Bytes } from "@/components/ui/values";
import { type BackingKind, pageSizeColor } from "@/lib/page-size";
import { formatNsInterval, formatNsWithin, formatRatio } from "@/lib/units";
import { chosenGains } from "./answer";

function kindOf(gain: Gain): BackingKind {
  if (gain.backing.toUpperCase() === "THP") return "thp";
  return gain.backing.toUpperCase() === "4K" ? "base" : "hugetlb";
}

/** What each page size would buy each database, as ranges. */
export function GainsCard({ plan }: { plan: Plan }) {
  const all = plan.gains.filter((gain) => kindOf(gain) !== "base");
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
        const chosen = plan.instances.find(({ name }) => name === instance)?.page_bytes;
        return (
          <div key={instance}>
            {instances.length > 1 && <h3 style={{ margin: "0 0 0.25rem", fontSize: 15 }}>{instance}</h3>}
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
                  <div style={{ whiteSpace: "nowrap" }}>
                    <PageSizeBadge pageBytes={gain.page_bytes} kind={kindOf(gain)} />
                    {chosen === gain.page_bytes && kindOf(gain) === "hugetlb" && <strong> chosen</strong>}
                    <div style={{ color: "var(--hp-text-dim)", fontSize: 12 }}>
                      {gain.confidence} confidence
                    </div>
                  </div>
                ),
                range: gain.saving_ns_per_operation,
                color: pageSizeColor(gain.page_bytes, kindOf(gain)),
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
  const [chosen] = chosenGains(plan).filter((gain) => kindOf(gain) !== "base");
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
    <details style={{ marginTop: 8, fontSize: 14 }}>
      <summary style={{ cursor: "pointer", color: "var(--hp-text-dim)" }}>
        How these numbers come about
      </summary>
      <ul
        style={{
          margin: "0.5rem 0 0",
          paddingLeft: "1.1rem",
          display: "flex",
          flexDirection: "column",
          gap: 6,
        }}
      >
        {gains.map((gain) => (
          <li key={gain.backing}>
            {gain.statement}{" "}
            <span style={{ color: "var(--hp-text-dim)" }}>
              {gain.inputs.map((term) => `${term.name} ${term.value} (${term.source})`).join("; ")}
            </span>
          </li>
        ))}
      </ul>
    </details>
  );
}
