import { UNKNOWN } from "@/lib/units";
import type { ChartAxis, ChartRow, ChartSeries, ValueAxis } from "./chart-types";
import classes from "./line-chart.module.css";
import { SeriesMark } from "./marker";

interface ChartTooltipProps {
  row: ChartRow;
  series: readonly ChartSeries[];
  xAxis: ChartAxis;
  valueAxis: ValueAxis;
  baseline?: string;
}

/** Every series at one x, each with its interval and its difference to the baseline. */
export function ChartTooltip({ row, series, xAxis, valueAxis, baseline }: ChartTooltipProps) {
  const base = baseline ? row.values[baseline] : undefined;
  return (
    <div className={classes.tooltip}>
      <table>
        <caption>{(xAxis.describe ?? xAxis.format)(row.x)}</caption>
        <tbody>
          {series.map(({ key, label, color, marker, isPoints }) => {
            const value = row.values[key] ?? null;
            if (isPoints && value === null) return null;
            const range = row.ranges?.[key];
            const showDelta = baseline !== undefined && key !== baseline && value !== null && base != null;
            return (
              <tr key={key}>
                <th scope="row">
                  <SeriesMark marker={marker} color={color} isPoints={isPoints} />
                  {label}
                </th>
                <td>{value === null ? UNKNOWN : valueAxis.format(value)}</td>
                <td className={classes.range}>
                  {range ? `${valueAxis.format(range[0])} to ${valueAxis.format(range[1])}` : ""}
                </td>
                {baseline !== undefined && (
                  <td className={classes.delta}>
                    {showDelta ? (valueAxis.formatDelta ?? valueAxis.format)(value - base) : ""}
                  </td>
                )}
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}
