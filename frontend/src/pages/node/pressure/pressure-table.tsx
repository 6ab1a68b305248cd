import type { PressurePoint } from "@/api/types";
import {
  footprintsOf,
  formatMicroseconds,
  formatSaving,
  halfWidth,
  isClear,
} from "@/components/curves/pressure-series";
import { Table } from "@/components/ui/table";
import { TableScroll } from "@/components/ui/table-scroll";
import { Bytes, Unknown } from "@/components/ui/values";
import { formatCount } from "@/lib/units";

interface Column {
  lines: number;
  waitNs: number;
}

/** What lies between two accesses: lines without a wait first, then waits. */
function pressureColumns(points: readonly PressurePoint[]): Column[] {
  const columns = new Map<string, Column>();
  for (const { lines_between: lines, wait_ns: waitNs } of points) {
    columns.set(`${lines}:${waitNs}`, { lines, waitNs });
  }
  return [...columns.values()].sort((a, b) => a.waitNs - b.waitNs || a.lines - b.lines);
}

/** The savings of one page size: a line a footprint, a column for what lies between two accesses. */
export function PressureTable({ points, title }: { points: readonly PressurePoint[]; title: string }) {
  const columns = pressureColumns(points);
  const waits = columns.filter(({ waitNs }) => waitNs > 0);
  const lines = columns.length - waits.length;
  const beside = [...new Set(waits.map((column) => column.lines))].map(formatCount).join(" or ");
  return (
    <TableScroll label={title} minWidth={120 + 84 * columns.length}>
      <Table verticalSpacing={5}>
        <Table.Thead>
          <Table.Tr>
            <Table.Th rowSpan={2} className="hp-num">
              Footprint
            </Table.Th>
            {lines > 0 && (
              <Table.Th colSpan={lines} scope="colgroup">
                ns saved, by lines read in between
              </Table.Th>
            )}
            {waits.length > 0 && (
              <Table.Th colSpan={waits.length} scope="colgroup">
                {beside} lines, and a wait of
              </Table.Th>
            )}
          </Table.Tr>
          <Table.Tr>
            {columns.map((column) => (
              <Table.Th key={`${column.lines}:${column.waitNs}`} scope="col" className="hp-num">
                {column.waitNs > 0 ? formatMicroseconds(column.waitNs) : formatCount(column.lines)}
              </Table.Th>
            ))}
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {footprintsOf(points).map((footprint) => (
            <Table.Tr key={footprint}>
              <Table.Th scope="row" fw={400} className="hp-num">
                <Bytes value={footprint} />
              </Table.Th>
              {columns.map((column) => (
                <Table.Td key={`${column.lines}:${column.waitNs}`} className="hp-num">
                  <Saving point={pointAt(points, footprint, column)} />
                </Table.Td>
              ))}
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </TableScroll>
  );
}

function pointAt(
  points: readonly PressurePoint[],
  footprint: number,
  column: Column,
): PressurePoint | undefined {
  return points.find(
    (point) =>
      point.footprint_bytes === footprint &&
      point.lines_between === column.lines &&
      point.wait_ns === column.waitNs,
  );
}

/** A saving with half of its 95 % interval; dim where the interval holds zero. */
function Saving({ point }: { point: PressurePoint | undefined }) {
  if (!point) return <Unknown why="This combination was not measured." />;
  if (point.delta_ns === null) return <Unknown why="Too few undisturbed pairs to say." />;
  const half = halfWidth(point);
  const unit = /\u00a0ns$/;
  return (
    <span className={isClear(point) ? undefined : "hp-dim hp-italic"}>
      {formatSaving(-point.delta_ns).replace(unit, "")}
      {half !== null && <span className="hp-dim"> ± {formatSaving(half).replace(unit, "")}</span>}
    </span>
  );
}
