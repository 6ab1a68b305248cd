import { List } from "@mantine/core";
import type { Gain, Plan } from "@/api/types";
import { IntervalChart } from "@/components/charts/interval-chart";
import { byBacking, curveBacking } from "@/components/curves/curve-series";
import { trialCommand } from "@/components/trials/trial-command";
import { PageSizeBadge } from "@/components/ui/badges";
import { CommandLine } from "@/components/ui/command-line";
import { Disclosure } from "@/components/ui/disclosure";
import { FoldCard } from "@/components/ui/fold-card";
import { StateText } from "@/components/ui/states";
import { Bytes } from "@/components/ui/values";
import { pageSizeColor } from "@/lib/page-size";
import { formatNsInterval, formatNsWithin, formatPercentChange } from "@/lib/units";

/** What each page size would buy one database, as ranges. */
export function GainsCard({ plan, instance }: { plan: Plan; instance: string }) {
  const gains = plan.gains
    .filter((gain) => gain.instance === instance && gain.backing_kind !== "base")
    .sort(byBacking);
  return (
    <FoldCard title={gainsTitle(gains, instance)}>
      {gains.length === 0 ? (
        <StateText>
          No gain could be estimated. A benchmark run of the node, or its processor in the catalogue, is
          needed.
        </StateText>
      ) : (
        <>
          <StateText>Against base pages. The bar is the range, the mark its most likely value.</StateText>
          <GainChart instance={instance} gains={gains} plan={plan} />
          <MeasureHere plan={plan} instance={instance} gains={gains} />
          <Statements gains={gains} />
        </>
      )}
    </FoldCard>
  );
}

interface GainChartProps {
  instance: string;
  gains: readonly Gain[];
  plan: Plan;
}

/** What was measured on the node, or the command that measures the chosen size there. */
function MeasureHere({ plan, instance, gains }: GainChartProps) {
  const gain = gains.find(({ is_chosen: isChosen }) => isChosen) ?? gains[0];
  const engine = plan.instances.find(({ name }) => name === instance)?.demand.engine;
  if (!gain || !engine) return null;
  const command = trialCommand(gain, engine, window.location.origin);
  if (!command) return null;
  return (
    <Disclosure label="Measure it here">
      <StateText>
        On the node, beside the server that runs; everything is given back. The next plan takes the result in
        place of this prediction.
      </StateText>
      <CommandLine command={command} />
    </Disclosure>
  );
}

/** The gain per page size: in per cent of throughput where the operation's own cost is known, else in ns. */
function GainChart({ instance, gains, plan }: GainChartProps) {
  const inPercent = gains.every(({ speedup }) => speedup !== null);
  const planned = plan.instances.find(({ name }) => name === instance);
  const waste = (gain: Gain) =>
    gain.backing_kind !== "hugetlb"
      ? null
      : [planned?.chosen, planned?.runner_up].find((choice) => choice?.page_bytes === gain.page_bytes)
          ?.waste_bytes;
  const rangeOf = ({ speedup, saving_ns_per_operation: saving }: Gain) =>
    inPercent && speedup
      ? { low: speedup.low - 1, likely: speedup.likely - 1, high: speedup.high - 1 }
      : saving;
  return (
    <IntervalChart
      title={`Gain of ${instance} by page size`}
      nameHeader="Page size"
      valueHeader={inPercent ? "Throughput" : "Saving per operation"}
      extraHeaders={["Lost to rounding", "Page tables"]}
      format={inPercent ? formatPercentChange : (ns, range) => formatNsWithin(ns, range)}
      formatInterval={inPercent ? undefined : formatNsInterval}
      rows={gains.map((gain) => ({
        key: gain.backing,
        name: (
          <div className="hp-nowrap">
            <PageSizeBadge pageBytes={gain.page_bytes} kind={curveBacking(gain)} />
            {gain.is_chosen && <strong> chosen</strong>}
            <div className="hp-dim hp-small">{gain.confidence} confidence</div>
          </div>
        ),
        range: rangeOf(gain),
        color: pageSizeColor(gain.page_bytes, curveBacking(gain)),
        detail: gain.statement,
        extra: [
          gain.backing_kind === "hugetlb" ? (
            <Bytes key="waste" value={waste(gain)} why="It was not a candidate." />
          ) : (
            "none"
          ),
          <Bytes key="pt" value={gain.page_tables_bytes} />,
        ],
      }))}
    />
  );
}

function gainsTitle(gains: readonly Gain[], instance: string): string {
  const chosen = gains.find((gain) => gain.is_chosen);
  const best =
    chosen ??
    [...gains].sort((a, b) => b.saving_ns_per_operation.likely - a.saving_ns_per_operation.likely)[0];
  if (!best) return `What would each page size buy ${instance}?`;
  const saving = best.saving_ns_per_operation;
  if (saving.likely <= 0) return "No page size is likely to make an operation faster here.";
  const what = best.backing_kind === "thp" ? "THP" : `${best.backing} pages`;
  if (best.speedup) {
    const percent = (ratio: number) => formatPercentChange(ratio - 1);
    return best.measured_here
      ? `${what} bring ${instance} ${percent(best.speedup.likely)} throughput against base pages, measured on this node.`
      : `${what} bring ${instance} ${percent(best.speedup.likely)} throughput against base pages, likely.`;
  }
  return `${what} save ${instance} about ${formatNsWithin(saving.likely, saving)} per operation against base pages.`;
}

/** What a single measurement will show: the range with its noise. Empty where that noise is not known. */
function oneMeasurement({ one_measurement: shown }: Gain): string {
  if (!shown) return "";
  const [low, high] = [shown.low, shown.high].map((ratio) => formatPercentChange(ratio - 1));
  return `One measurement on a quiet machine will show ${low} to ${high}. `;
}

/** Nanoseconds and where each figure comes from. */
function Statements({ gains }: { gains: readonly Gain[] }) {
  return (
    <Disclosure label="How these numbers are computed">
      <List size="sm" spacing={6}>
        {gains.map((gain) => (
          <List.Item key={gain.backing}>
            {gain.backing}: {formatNsInterval(gain.saving_ns_per_operation)} per operation, likely{" "}
            {formatNsWithin(gain.saving_ns_per_operation.likely, gain.saving_ns_per_operation)}.{" "}
            {gain.statement} {oneMeasurement(gain)}
            <span className="hp-dim">
              {gain.inputs.map((term) => `${term.name} ${term.value} (${term.source})`).join("; ")}
            </span>
          </List.Item>
        ))}
      </List>
    </Disclosure>
  );
}
