import { VisuallyHidden } from "@mantine/core";
import type { ReactNode } from "react";
import { Hint } from "@/components/ui/hint";
import { Unknown } from "@/components/ui/values";
import classes from "./interval-chart.module.css";

interface IntervalRange {
  low: number;
  likely: number;
  high: number;
}

export interface IntervalRow {
  key: string;
  name: ReactNode;
  /** Null when the value is not known; `why` says so. */
  range: IntervalRange | null;
  color: string;
  /** A value from elsewhere, drawn as a diamond on the same scale. */
  mark?: number | null;
  why?: string;
  detail?: ReactNode;
  extra?: readonly ReactNode[];
}

interface IntervalChartProps {
  title: string;
  nameHeader: string;
  valueHeader: string;
  extraHeaders?: readonly string[];
  rows: readonly IntervalRow[];
  /** A value; its range says how exact it is. */
  format: (value: number, range: IntervalRange) => string;
  /** The two ends, where they are not just two values. */
  formatInterval?: (range: IntervalRange) => string;
  /** One line per row, for long lists. */
  compact?: boolean;
}

/** The ends of the common axis: all ranges and zero, so that a gain and a loss are told apart at a glance. */
export function intervalDomain(rows: readonly Pick<IntervalRow, "range" | "mark">[]): [number, number] {
  const ends = rows.flatMap(({ range, mark }) => [
    ...(range ? [range.low, range.high] : []),
    ...(mark == null ? [] : [mark]),
  ]);
  const low = Math.min(0, ...ends);
  const high = Math.max(0, ...ends);
  return low === high ? [low, low + 1] : [low, high];
}

/** Ranges as bars with their most likely value, to one scale. The figures stand beside the bars, so it is a table too. */
export function IntervalChart({
  title,
  nameHeader,
  valueHeader,
  extraHeaders = [],
  rows,
  format,
  formatInterval = (range) => {
    const [low, high] = [format(range.low, range), format(range.high, range)];
    return low === high ? "" : `${low} to ${high}`;
  },
  compact = false,
}: IntervalChartProps) {
  const [low, high] = intervalDomain(rows);
  const at = (value: number) => (100 * (value - low)) / (high - low);
  const figures = (range: IntervalRange) =>
    [format(range.likely, range), formatInterval(range)].filter(Boolean).join(", ");
  return (
    <div className={classes.box}>
      <table className={classes.chart} data-compact={compact}>
        <VisuallyHidden component="caption">{title}</VisuallyHidden>
        <thead>
          <tr>
            <th scope="col">{nameHeader}</th>
            <th scope="col" className={classes.plot}>
              {valueHeader}
            </th>
            <th scope="col" className={classes.number}>
              Likely (range)
            </th>
            {extraHeaders.map((header) => (
              <th key={header} scope="col" className={classes.number}>
                {header}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map(({ key, name, range, color, mark, why, detail, extra = [] }) => (
            <tr key={key}>
              <th scope="row">{name}</th>
              <td className={classes.plot}>
                {range ? (
                  <Hint label={detail} className={classes.hint}>
                    {/* A bar with a hint is a tab stop, and the drawing gives it no name. */}
                    {detail && <VisuallyHidden>{figures(range)}</VisuallyHidden>}
                    <span className={classes.track} aria-hidden="true">
                      <span className={classes.zero} style={{ left: `${at(0)}%` }} />
                      <span
                        className={classes.band}
                        style={{
                          left: `${at(range.low)}%`,
                          width: `${at(range.high) - at(range.low)}%`,
                          background: `color-mix(in srgb, ${color} 38%, var(--hp-surface))`,
                        }}
                      />
                      <span
                        className={classes.likely}
                        style={{ left: `${at(range.likely)}%`, background: color }}
                      />
                      {mark != null && <span className={classes.mark} style={{ left: `${at(mark)}%` }} />}
                    </span>
                  </Hint>
                ) : (
                  <Unknown why={why} />
                )}
              </td>
              <td className={classes.number}>
                {range ? (
                  <>
                    <strong>{format(range.likely, range)}</strong>
                    <div className={classes.range}>{formatInterval(range)}</div>
                  </>
                ) : (
                  <Unknown why={why} />
                )}
              </td>
              {extra.map((cell, index) => (
                <td key={extraHeaders[index]} className={`${classes.number} ${classes.extra}`}>
                  {cell}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
