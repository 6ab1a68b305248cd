import { SourceBadge } from "@/components/ui/badges";
import { Table } from "@/components/ui/table";
import { TableScroll } from "@/components/ui/table-scroll";
import { Bytes } from "@/components/ui/values";
import { formatShare } from "@/lib/units";
import { type ActiveProps, mapRows, PartSwatch } from "./map-rows";
import classes from "./memory-map.module.css";
import type { MapBar } from "./memory-map-types";

/** All parts with their figures and sources. */
export default function MapTable({
  bars,
  planned,
  active,
  onActive,
}: ActiveProps & { bars: readonly MapBar[]; planned: boolean }) {
  const rows = mapRows(bars);
  const totalBytes = bars.reduce((sum, bar) => sum + bar.totalBytes, 0);
  return (
    <TableScroll label="Parts of memory" minWidth={420}>
      <Table className={classes.table} verticalSpacing={5} withRowBorders>
        <Table.Thead>
          <Table.Tr>
            <Table.Th>Part</Table.Th>
            {planned && <Table.Th className="hp-num">Now</Table.Th>}
            <Table.Th className="hp-num">{planned ? "Planned" : "Size"}</Table.Th>
            <Table.Th className="hp-num">Share</Table.Th>
            <Table.Th>Source</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {rows.map(({ part, bytes, ghostBytes }) => (
            <Table.Tr
              key={part.key}
              data-active={active === part.key}
              onMouseEnter={() => onActive(part.key)}
              onMouseLeave={() => onActive(null)}
            >
              <Table.Th scope="row" fw={400}>
                <span className={classes.partName}>
                  <PartSwatch part={part} />
                  {part.label}
                </span>
              </Table.Th>
              {planned && <Table.Td className="hp-num">{bytes !== null && <Bytes value={bytes} />}</Table.Td>}
              <SizeCells bytes={planned ? ghostBytes : bytes} totalBytes={totalBytes} />
              <Table.Td>
                <SourceBadge source={part.source} detail={part.detail} />
              </Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </TableScroll>
  );
}

function SizeCells({ bytes, totalBytes }: { bytes: number | null; totalBytes: number }) {
  return (
    <>
      <Table.Td className="hp-num">{bytes !== null && <Bytes value={bytes} />}</Table.Td>
      <Table.Td className="hp-num">{bytes !== null && formatShare(bytes / totalBytes)}</Table.Td>
    </>
  );
}
