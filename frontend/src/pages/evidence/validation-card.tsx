import type { Validation, ValidationRun } from "@/api/types";
import { IntervalChart } from "@/components/charts/interval-chart";
import { StateBadge } from "@/components/ui/badges";
import { Disclosure } from "@/components/ui/disclosure";
import { QuestionCard } from "@/components/ui/question-card";
import { formatPercentChange } from "@/lib/units";
import { token } from "@/theme/tokens";

const percent = (value: number) => formatPercentChange(value / 100);

/** What was measured: over all pairs, or the mean of the rounds where nothing else was printed. */
export function measuredOf(run: Pick<ValidationRun, "measured_percent" | "measured_rounds_percent">): number {
  const rounds = run.measured_rounds_percent;
  return run.measured_percent ?? rounds.reduce((sum, value) => sum + value, 0) / rounds.length;
}

export function validationTitle(items: readonly ValidationRun[]): string {
  const inside = items.filter(({ verdict }) => verdict === "inside").length;
  const outside = items.filter(({ verdict }) => verdict === "outside").length;
  return `Measured here on a real PostgreSQL: ${inside} of ${items.length} gains lie inside the range written down before, ${outside} outside of it and of the known noise.`;
}

/** A machine and how its runs came out: its line while they are folded. */
export function machineLabel(
  machine: string,
  items: readonly Pick<ValidationRun, "machine" | "verdict">[],
): string {
  const own = items.filter((item) => item.machine === machine);
  const count = (wanted: ValidationRun["verdict"]) => own.filter(({ verdict }) => verdict === wanted).length;
  return `${machine}: ${count("inside")} of ${own.length} inside, ${count("within_noise")} within the noise, ${count("outside")} outside`;
}

const VERDICTS = {
  inside: { state: "ok", text: "Inside" },
  within_noise: { state: "unknown", text: "Within the noise" },
  outside: { state: "attention", text: "Outside" },
} as const;

/** The project's own validation runs, those that miss too, by machine. */
export function ValidationCard({ validation }: { validation: Validation }) {
  const machines = [...new Set(validation.items.map(({ machine }) => machine))];
  return (
    <QuestionCard
      title={validationTitle(validation.items)}
      description={`${validation.about} Bar: predicted range; diamond: measured. Repeat it on your machine with ${validation.command}.`}
    >
      {machines.map((machine) => (
        <Disclosure key={machine} label={machineLabel(machine, validation.items)}>
          <IntervalChart
            compact
            title={`Validation runs on ${machine}`}
            nameHeader="Run"
            valueHeader="Predicted gain"
            extraHeaders={["Measured", "Verdict"]}
            format={percent}
            rows={validation.items
              .filter((item) => item.machine === machine)
              .map((item) => ({
                key: `${item.date}:${item.configuration}:${item.case}`,
                name: (
                  <>
                    {item.case}
                    <div className="hp-dim hp-small">
                      {item.date}, {item.configuration}
                    </div>
                  </>
                ),
                range: item.predicted_percent,
                color: item.verdict === "inside" ? token("accent") : token("state-attention"),
                mark: measuredOf(item),
                detail: detailOf(item),
                extra: [
                  percent(measuredOf(item)),
                  <StateBadge
                    key="verdict"
                    state={VERDICTS[item.verdict].state}
                    text={VERDICTS[item.verdict].text}
                  />,
                ],
              }))}
          />
        </Disclosure>
      ))}
    </QuestionCard>
  );
}

function detailOf(item: ValidationRun): string {
  const noise = item.noise_range_percent;
  return [
    item.measured_throughput_percent === null
      ? null
      : `Throughput: ${percent(item.measured_throughput_percent)}.`,
    item.measured_rounds_percent.length > 0
      ? `By round: ${item.measured_rounds_percent.map(percent).join(", ")}.`
      : null,
    noise
      ? `With the machine's noise: ${percent(noise.low)} to ${percent(noise.high)}.`
      : "The machine's noise is unknown.",
    item.note,
  ]
    .filter(Boolean)
    .join(" ");
}
