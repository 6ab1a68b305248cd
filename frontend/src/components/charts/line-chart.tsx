import { SegmentedControl } from "@mantine/core";
import { useElementSize } from "@mantine/hooks";
import { useMemo, useState } from "react";
import { Area, CartesianGrid, ComposedChart, Line, ReferenceLine, Tooltip, XAxis, YAxis } from "recharts";
import { StateText } from "@/components/ui/states";
import { formatTick } from "@/lib/units";
import { token } from "@/theme/tokens";
import {
  axisPosition,
  axisValue,
  drawnValues,
  endLabels,
  largestValue,
  linearTicks,
  log2Ticks,
  type PlacedReference,
  placeReferences,
  smallestValue,
  timeTicks,
  valueTicks,
  xDomain,
} from "./chart-layout";
import { ChartTable } from "./chart-table";
import { ChartTooltip } from "./chart-tooltip";
import type { ChartAxis, ChartReference, ChartRow, ChartSeries, ValueAxis } from "./chart-types";
import classes from "./line-chart.module.css";
import { Marker, SeriesMark } from "./marker";

interface LineChartProps {
  /** What the chart shows, for screen readers and for its table. */
  title: string;
  rows: readonly ChartRow[];
  /** The rows of the table view, where a curve is drawn finer than it is told. */
  tableRows?: readonly ChartRow[];
  series: readonly ChartSeries[];
  xAxis: ChartAxis;
  valueAxis: ValueAxis;
  references?: readonly ChartReference[];
  /** The series the others are compared with on hover. */
  baseline?: string;
  height?: number;
  empty?: string;
}

const MIN_AXIS_WIDTH = 44;
const AXIS_HEIGHT = 24;
const LANE_HEIGHT = 15;
const MIN_WIDTH = 320;
/** Above so many points a mark each only covers the lines, and each is an element of the page. */
const MOST_MARKS = 600;

/**
 * The one wrapper around Recharts: margins, axes, tooltip, legend, references, keyboard access, and the table view of
 * the same rows. Zero is always on the value axis; nothing is animated.
 */
export function LineChart(props: LineChartProps) {
  const { title, rows, series, xAxis, valueAxis, references = [], baseline, height = 340 } = props;
  const { ref, width: measured } = useElementSize();
  const [view, setView] = useState("chart");
  const [hidden, setHidden] = useState<readonly string[]>([]);
  const shown = useMemo(() => series.filter(({ key }) => !hidden.includes(key)), [series, hidden]);
  if (rows.length === 0 || series.length === 0) {
    return <StateText>{props.empty ?? "There is nothing to draw yet."}</StateText>;
  }

  const toggle = (key: string) =>
    setHidden((keys) => (keys.includes(key) ? keys.filter((other) => other !== key) : [...keys, key]));

  return (
    <figure className={classes.figure} aria-label={title}>
      <div className={classes.toolbar}>
        <fieldset className={classes.legend} aria-label="Series shown">
          {series.map(({ key, label, color, marker, isPoints }) => (
            <button
              key={key}
              type="button"
              className={classes.legendItem}
              aria-pressed={!hidden.includes(key)}
              onClick={() => toggle(key)}
            >
              <SeriesMark marker={marker} color={color} isPoints={isPoints} />
              {label}
            </button>
          ))}
        </fieldset>
        <SegmentedControl
          size="xs"
          value={view}
          onChange={setView}
          aria-label={`View of ${title}`}
          data={[
            { value: "chart", label: "Chart" },
            { value: "table", label: "Table" },
          ]}
        />
      </div>
      {view === "table" ? (
        <ChartTable
          title={title}
          rows={props.tableRows ?? rows}
          series={shown}
          xAxis={xAxis}
          valueAxis={valueAxis}
        />
      ) : (
        <>
          <div className={classes.axisTitle}>{valueAxis.label}</div>
          <div className={classes.plot} ref={ref}>
            <Plot
              rows={rows}
              series={shown}
              xAxis={xAxis}
              valueAxis={valueAxis}
              references={references}
              baseline={baseline}
              height={height}
              width={Math.max(measured, MIN_WIDTH)}
            />
          </div>
          <div className={classes.axisTitle} data-axis="x">
            {xAxis.label}
          </div>
        </>
      )}
    </figure>
  );
}

interface PlotProps
  extends Required<Pick<LineChartProps, "rows" | "series" | "xAxis" | "valueAxis" | "references">> {
  baseline?: string;
  width: number;
  height: number;
}

function usePlotLayout({ rows, series, xAxis, references, width, height }: PlotProps) {
  return useMemo(() => {
    const domain = xDomain(rows, xAxis);
    const keys = series.map(({ key }) => key);
    const yMin = smallestValue(rows, keys);
    const ticks = valueTicks(largestValue(rows, keys), 5, yMin);
    const axisWidth = Math.max(MIN_AXIS_WIDTH, ...ticks.map((tick) => formatTick(tick).length * 7 + 12));
    const right = Math.max(16, ...series.map(({ short }) => short.length * 7.5 + 14));
    const plotWidth = width - axisWidth - right;
    const toPixel = (x: number) =>
      ((axisPosition(x, xAxis) - domain[0]) / (domain[1] - domain[0])) * plotWidth;
    const inside = references.filter(({ x }) => {
      const position = axisPosition(x, xAxis);
      return position >= domain[0] && position <= domain[1];
    });
    const placed = placeReferences(inside, toPixel, plotWidth);
    const lanes = placed.reduce((most, { lane }) => Math.max(most, lane + 1), 0);
    const top = 10 + lanes * LANE_HEIGHT;
    const range = [yMin, ticks.at(-1) ?? 1] as const;
    const labels = endLabels(rows, series, range, height - top - AXIS_HEIGHT);
    return {
      domain,
      axisWidth,
      right,
      placed,
      top,
      ticks,
      range,
      labels,
      toPixel,
      xTicks: xTicks(rows, xAxis, plotWidth),
    };
  }, [rows, series, xAxis, references, width, height]);
}

/** Ticks at powers of two, at steps of one, at round times, or where something was measured. */
function xTicks(rows: readonly ChartRow[], xAxis: ChartAxis, plotWidth: number): number[] | undefined {
  if (xAxis.scale === "log2") return log2Ticks(xDomain(rows, xAxis), plotWidth);
  if (xAxis.scale === "linear") return linearTicks(xDomain(rows, xAxis), plotWidth);
  if (xAxis.scale === "symlog") return rows.map((row) => axisPosition(row.x, xAxis));
  if (xAxis.scale === "time") return timeTicks(xDomain(rows, xAxis), plotWidth);
  return undefined;
}

interface Drawn {
  line: Map<ChartRow, number | null>;
  low: Map<ChartRow, number | null>;
  high: Map<ChartRow, number | null>;
}

function drawnSeries(rows: readonly ChartRow[], key: string, axis: ChartAxis): Drawn {
  const end = (side: 0 | 1) =>
    drawnValues(
      rows,
      ({ values, ranges }) => (values[key] === undefined ? undefined : (ranges?.[key]?.[side] ?? null)),
      axis,
    );
  return { line: drawnValues(rows, ({ values }) => values[key], axis), low: end(0), high: end(1) };
}

function drawnBand(drawn: Drawn | undefined, row: ChartRow): [number, number] | null {
  const [low, high] = [drawn?.low.get(row), drawn?.high.get(row)];
  return low == null || high == null ? null : [low, high];
}

function Plot(props: PlotProps) {
  const { rows, series, xAxis, valueAxis, baseline, width, height } = props;
  const { domain, axisWidth, right, placed, top, ticks, range, labels, toPixel, xTicks } =
    usePlotLayout(props);
  const drawn = useMemo(
    () => new Map(series.map(({ key }) => [key, drawnSeries(rows, key, xAxis)])),
    [rows, series, xAxis],
  );
  const drawsMarks = rows.length * series.length <= MOST_MARKS;
  return (
    <>
      <ComposedChart
        width={width}
        height={height}
        data={rows as ChartRow[]}
        margin={{ top, right, bottom: 0, left: 0 }}
        accessibilityLayer
      >
        <CartesianGrid vertical={false} stroke={token("grid")} />
        <XAxis
          type="number"
          dataKey={(row: ChartRow) => axisPosition(row.x, xAxis)}
          domain={domain}
          ticks={xTicks}
          tickFormatter={(position: number) => xAxis.format(axisValue(position, xAxis))}
          tick={{ fill: token("axis"), fontSize: 12 }}
          tickLine={false}
          axisLine={range[0] < 0 ? false : { stroke: token("border-strong") }}
          height={AXIS_HEIGHT}
          minTickGap={12}
          interval={xAxis.scale === "log2" || xAxis.scale === "linear" ? 0 : "preserveStartEnd"}
        />
        <YAxis
          domain={[...range]}
          ticks={ticks}
          tickFormatter={formatTick}
          tick={{ fill: token("axis"), fontSize: 12 }}
          tickLine={false}
          axisLine={false}
          width={axisWidth}
        />
        {range[0] < 0 && <ReferenceLine y={0} stroke={token("border-strong")} />}
        {placed.map((reference) => (
          <ReferenceLine
            key={`${reference.label}:${reference.x}`}
            x={axisPosition(reference.x, xAxis)}
            stroke={reference.color ?? token("reference")}
            strokeDasharray="2 3"
            label={({ viewBox }) => <ReferenceLabel reference={reference} viewBox={viewBox} />}
          />
        ))}
        <Tooltip
          isAnimationActive={false}
          cursor={{ stroke: token("border-strong") }}
          wrapperStyle={{ zIndex: 10 }}
          content={({ active, payload }) => {
            const row = payload?.[0]?.payload as ChartRow | undefined;
            if (!active || !row) return null;
            return (
              <ChartTooltip
                row={row}
                series={series}
                xAxis={xAxis}
                valueAxis={valueAxis}
                baseline={baseline}
              />
            );
          }}
        />
        {series
          .filter(({ key }) => rows.some((row) => row.ranges?.[key]))
          .map(({ key, color, isAssumed }) => (
            <Area
              key={`${key}:range`}
              dataKey={(row: ChartRow) => drawnBand(drawn.get(key), row)}
              stroke={isAssumed ? color : "none"}
              strokeDasharray="3 4"
              fill={color}
              fillOpacity={0.14}
              isAnimationActive={false}
              activeDot={false}
              tooltipType="none"
              legendType="none"
            />
          ))}
        {series.map(({ key, label, color, marker, isPoints, isAssumed }) => (
          <Line
            key={key}
            name={label}
            dataKey={(row: ChartRow) => drawn.get(key)?.line.get(row) ?? null}
            stroke={color}
            strokeWidth={isPoints ? 0 : 2}
            strokeDasharray={isAssumed ? "6 5" : undefined}
            isAnimationActive={false}
            connectNulls={false}
            dot={
              !isPoints && !drawsMarks
                ? false
                : ({ cx, cy, index }) =>
                    cx === undefined ||
                    cy === undefined ||
                    cy === null ||
                    rows[index]?.values[key] == null ? (
                      <g key={index} />
                    ) : (
                      <Marker key={index} shape={marker} x={cx} y={cy} color={color} size={3.2} />
                    )
            }
            activeDot={{ r: 5, stroke: token("surface"), strokeWidth: 2 }}
          />
        ))}
      </ComposedChart>
      {labels.map(({ key, x, y }) => {
        const line = series.find((candidate) => candidate.key === key);
        return (
          <span
            key={key}
            className={classes.endLabel}
            style={{ top: top + y, left: axisWidth + toPixel(x) + 8, color: line?.color }}
            aria-hidden="true"
          >
            {line?.short}
          </span>
        );
      })}
    </>
  );
}

function ReferenceLabel({ reference, viewBox }: { reference: PlacedReference; viewBox: unknown }) {
  const { x = 0, y = 0 } = viewBox as { x?: number; y?: number };
  const offset = reference.side === "right" ? 4 : -4;
  return (
    <g>
      <line
        x1={x}
        x2={x}
        y1={y}
        y2={y - 4 - reference.lane * LANE_HEIGHT - 10}
        stroke={reference.color ?? token("reference")}
        strokeDasharray="2 3"
      />
      <text
        x={x + offset}
        y={y - 4 - reference.lane * LANE_HEIGHT}
        fill={token("text-dim")}
        fontSize={11.5}
        textAnchor={reference.side === "right" ? "start" : "end"}
      >
        {reference.label}
      </text>
    </g>
  );
}
