import { Group, SegmentedControl } from "@mantine/core";
import { useState } from "react";
import type { Pressure, PressurePoint, RunDetail } from "@/api/types";
import { LineChart } from "@/components/charts/line-chart";
import { byBacking, curveBacking } from "@/components/curves/curve-series";
import { NotMeasured, statusReason } from "@/components/curves/missing-curves";
import {
  BETWEEN_AXES,
  type Between,
  footprintSeries,
  formatSaving,
  linesBesideWait,
  type PressureBacking,
  pointsBetween,
  pressureBackings,
  pressureReading,
  pressureRows,
} from "@/components/curves/pressure-series";
import { QuestionCard } from "@/components/ui/question-card";
import { StateText } from "@/components/ui/states";
import { Term } from "@/components/ui/term";
import { pageSizeShort } from "@/lib/page-size";
import { formatBytes, formatCount } from "@/lib/units";
import { PressureTable } from "./pressure-table";

const QUESTION = "What does a page size save while a program reads other data?";

interface PressureCardProps {
  run: RunDetail;
  basePageBytes: number;
}

/** What page sizes save when page-table lines leave the caches between two accesses. */
export function PressureCard({ run, basePageBytes }: PressureCardProps) {
  const { pressure } = run;
  if (pressure === null) {
    if (!run.curves.some((curve) => curve.section === "latency")) return null;
    return (
      <QuestionCard title={QUESTION}>
        <StateText>
          Unknown: this run was made before tlbbench measured reads under cache pressure. Measure the node
          again.
        </StateText>
      </QuestionCard>
    );
  }
  const backings = pressureBackings(pressure.points);
  if (backings.length === 0) {
    return (
      <QuestionCard title={QUESTION}>
        <StateText>Not measured: {statusReason(pressure)}.</StateText>
      </QuestionCard>
    );
  }
  return (
    <Measured pressure={pressure} backings={backings} run={run} baseShort={pageSizeShort(basePageBytes)} />
  );
}

/** Of several sizes the smallest pool is shown first: it is the one most often planned. */
function firstShown(backings: readonly PressureBacking[]): PressureBacking {
  return (backings.find(({ kind }) => kind === "hugetlb") ?? backings[0]) as PressureBacking;
}

interface MeasuredProps {
  pressure: Pressure;
  backings: readonly PressureBacking[];
  run: RunDetail;
  baseShort: string;
}

function Measured({ pressure, backings, run, baseShort }: MeasuredProps) {
  const [chosen, choose] = useState<string | null>(null);
  const [between, setBetween] = useState<Between>("lines");
  const backing = backings.find((candidate) => candidate.backing === chosen) ?? firstShown(backings);
  const points = pressure.points.filter((point) => point.backing === backing.backing);
  const axis = linesBesideWait(points) === null ? "lines" : between;
  return (
    <QuestionCard
      title={pressureReading(points, backing) ?? QUESTION}
      description={
        <>
          One read timed alone after other cache lines were read (
          <Term name="cache-pressure">cache pressure</Term>). In a pointer chase the page tables stay cached;
          in a database they leave the caches between two uses, and a <Term name="page-walk">walk</Term> waits
          for memory.
        </>
      }
      actions={
        <Group gap={8}>
          {linesBesideWait(points) !== null && (
            <SegmentedControl
              size="xs"
              value={axis}
              onChange={(value) => setBetween(value as Between)}
              aria-label="Between two accesses"
              data={[
                { value: "lines", label: "Lines between" },
                { value: "wait", label: "Time between" },
              ]}
            />
          )}
          {backings.length > 1 && (
            <SegmentedControl
              size="xs"
              value={backing.backing}
              onChange={choose}
              aria-label="Page size"
              data={backings.map(({ backing: value, short }) => ({ value, label: short }))}
            />
          )}
        </Group>
      }
    >
      <PressureChart points={points} backing={backing} between={axis} baseShort={baseShort} />
      <PressureTable points={points} title={`Savings of ${backing.label} under cache pressure`} />
      <StateText>{howMeasured(pressure, points)}</StateText>
      <NotMeasured items={notMeasured(run, backings)} />
    </QuestionCard>
  );
}

interface PressureChartProps {
  points: readonly PressurePoint[];
  backing: PressureBacking;
  between: Between;
  baseShort: string;
}

function PressureChart({ points, backing, between, baseShort }: PressureChartProps) {
  const lines = linesBesideWait(points);
  const besides = between === "wait" && lines !== null ? `, beside ${formatCount(lines)} lines` : "";
  return (
    <LineChart
      title={`Saving of ${backing.label} by ${between === "lines" ? "lines" : "time"} between`}
      rows={pressureRows(points, between)}
      series={footprintSeries(pointsBetween(points, between), between, backing)}
      xAxis={{ ...BETWEEN_AXES[between], label: `${BETWEEN_AXES[between].label}${besides}` }}
      valueAxis={{
        label: `ns saved per access against ${baseShort} pages (mean; band 95 % interval)`,
        format: formatSaving,
      }}
      height={300}
    />
  );
}

/** Under the table: what its figures are, and what disturbed them. */
function howMeasured(pressure: Pressure, points: readonly PressurePoint[]): string {
  const pairs = points.map((point) => point.pairs).filter((count) => count !== null);
  const [fewest, most] = [Math.min(...pairs), Math.max(...pairs)];
  const many = fewest === most ? formatCount(most) : `${formatCount(fewest)} to ${formatCount(most)}`;
  const region =
    pressure.region_bytes === null
      ? ""
      : ` The lines between come from a region of ${formatBytes(pressure.region_bytes)}${pressure.region_backing ? ` on ${pressure.region_backing === "THP" ? "THP" : `${pressure.region_backing} pages`}` : ""}.`;
  const trouble =
    pressure.status === "ok" ? "" : ` The measurement is not complete: ${statusReason(pressure)}.`;
  const counted = pairs.length === 0 ? "" : `Means of ${many} pairs, `;
  return `${counted}± half of the 95 % interval. Italic: the interval holds zero, so no difference is shown.${region}${trouble}`;
}

/** Page sizes that the chase was asked for and that have no point here, each with its reason. */
function notMeasured(run: RunDetail, backings: readonly PressureBacking[]) {
  const missing = new Map(
    run.curves
      .filter((curve) => curve.section === "latency" && curveBacking(curve) !== "base")
      .filter((curve) => backings.every(({ backing }) => backing !== curve.backing))
      .map((curve) => [curve.backing, curve] as const),
  );
  return [...missing.values()].sort(byBacking).map((curve) => ({
    key: curve.backing,
    pageBytes: curve.page_bytes ?? 0,
    kind: curveBacking(curve),
    reason: curve.points.length > 0 ? "its turn did not come, or its pages were in use" : statusReason(curve),
  }));
}
