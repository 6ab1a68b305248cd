import { Table } from "@/components/ui/table";
import { Unknown } from "@/components/ui/values";
import type { ChartAxis, ChartRow, ChartSeries, ValueAxis } from "./chart-types";
import classes from "./line-chart.module.css";

interface ChartTableProps {
  title: string;
  rows: readonly ChartRow[];
  series: readonly ChartSeries[];
  xAxis: ChartAxis;
  valueAxis: ValueAxis;
}

/** The numbers of a chart as a table. */
export function ChartTable({ title, rows, series, xAxis, valueAxis }: ChartTableProps) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a box that scrolls must be reachable by keyboard
    <section className={classes.scroll} tabIndex={0} aria-label={`${title}, table`}>
      <Table stickyHeader striped withRowBorders={false} verticalSpacing={4}>
        <Table.Thead>
          <Table.Tr>
            <Table.Th className="hp-num">{xAxis.label}</Table.Th>
            {series.map(({ key, label }) => (
              <Table.Th key={key} className="hp-num">
                {label}
              </Table.Th>
            ))}
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {rows.map((row) => (
            <Table.Tr key={row.x}>
              <Table.Td className="hp-num">{(xAxis.describe ?? xAxis.format)(row.x)}</Table.Td>
              {series.map(({ key }) => {
                const value = row.values[key];
                return (
                  <Table.Td key={key} className="hp-num">
                    {value === null || value === undefined ? <Unknown /> : valueAxis.format(value)}
                  </Table.Td>
                );
              })}
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </section>
  );
}
