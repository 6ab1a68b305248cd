import { SourceBadge } from "@/components/ui/badges";
import type { TermName } from "@/components/ui/glossary";
import { Table } from "@/components/ui/table";
import { TableScroll } from "@/components/ui/table-scroll";
import { Term } from "@/components/ui/term";
import { Bytes } from "@/components/ui/values";
import { formatShare } from "@/lib/units";
import { type ActiveProps, mapRows, PartSwatch } from "./map-rows";
import classes from "./memory-map.module.css";
import type { MapBar } from "./memory-map-types";

/** The parts that are terms, by the first word of their key. */
const TERMS: Readonly<Record<string, TermName | undefined>> = {
  kube_reserved: "kube-reserved",
  eviction: "eviction",
  tenants: "workload",
  page_tables: "page-tables",
  page_cache: "page-cache",
  pool: "huge-page-pool",
  pool_slack: "slack",
};

/** All parts with their figures and sources. */
export default function MapTable({
  bars,
  planned,
  active,
  onActive,
}: ActiveProps & { bars: readonly MapBar[]; planned: boolean }) {
  const rows = mapRows(bars).map((row) => ({ ...row, term: TERMS[row.part.key.split(":")[0] ?? ""] }));
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
            <Table.Th>
              <Term name="source">Source</Term>
            </Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {rows.map(({ part, term, bytes, ghostBytes }) => (
            <Table.Tr
              key={part.key}
              data-active={active === part.key}
              onMouseEnter={() => onActive(part.key)}
              onMouseLeave={() => onActive(null)}
            >
              <Table.Th scope="row" fw={400}>
                <span className={classes.partName}>
                  <PartSwatch part={part} />
                  {term ? <Term name={term}>{part.label}</Term> : part.label}
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
