import type { RunCurve, RunDetail } from "@/api/types";
import { byBacking } from "@/components/curves/curve-series";
import { MissingCurves } from "@/components/curves/missing-curves";
import { QuestionCard } from "@/components/ui/question-card";
import { Table } from "@/components/ui/table";
import { TableScroll } from "@/components/ui/table-scroll";
import { Unknown } from "@/components/ui/values";
import { formatBytes, formatCount, formatNs } from "@/lib/units";

interface Kind {
  xName: string;
  title: string;
  heading: string;
  format: (x: number) => string;
}

const KINDS: readonly Kind[] = [
  {
    xName: "chases",
    title: "Independent chases side by side: time per access of any of them",
    heading: "Chases",
    format: formatCount,
  },
  {
    xName: "numa_node",
    title: "NUMA node that holds the memory: time per access",
    heading: "NUMA node",
    format: formatCount,
  },
  {
    xName: "table_bytes",
    title: "Page tables that the walks read: time per access to a page (the first line needs no walks)",
    heading: "Page tables",
    format: formatBytes,
  },
  {
    xName: "stride_bytes",
    title: "Stride from page to page: time per access, rising where the processor's caches of walks end",
    heading: "Stride",
    format: formatBytes,
  },
];

function walkCurves(run: Pick<RunDetail, "curves">): RunCurve[] {
  return run.curves.filter((curve) => curve.section === "walks").sort(byBacking);
}

/** How much slower the farthest NUMA node is than the one measured on, or how far walks overlap. */
function walksFinding(run: Pick<RunDetail, "curves" | "walks_cpu_node">): string {
  const base = walkCurves(run).filter((curve) => curve.backing_kind === "base");
  const median = (xName: string, x: number) =>
    base.find((curve) => curve.x_name === xName)?.points.find((point) => point.x === x)?.ns_p50 ?? null;
  const local = run.walks_cpu_node === null ? null : median("numa_node", run.walks_cpu_node);
  const others = base
    .filter((curve) => curve.x_name === "numa_node")
    .flatMap((curve) => curve.points.filter((point) => point.x !== run.walks_cpu_node));
  const farthest = Math.max(...others.map((point) => point.ns_p50 ?? 0));
  if (local !== null && farthest > 0) {
    return `In base pages, a read of the farthest NUMA node takes ${formatNs(farthest)}, of the own one ${formatNs(local)}.`;
  }
  const one = median("chases", 1);
  const eight = median("chases", 8);
  if (one !== null && eight !== null) {
    return `In base pages, a read takes ${formatNs(one)} alone and ${formatNs(eight)} beside seven others.`;
  }
  return "What does a page walk cost, and where?";
}

/** Page walks by what decides over their cost, one table for each thing that was varied. */
export function WalksCard({ run }: { run: RunDetail }) {
  const curves = walkCurves(run);
  return (
    <QuestionCard
      title={walksFinding(run)}
      description="Medians of dependent reads, one line in each page. What overlaps or stays in a cache gains less from huge pages."
    >
      {KINDS.map((kind) => (
        <WalksTable
          key={kind.xName}
          kind={kind}
          curves={curves.filter(({ x_name, points }) => x_name === kind.xName && points.length > 0)}
          localNode={kind.xName === "numa_node" ? run.walks_cpu_node : null}
        />
      ))}
      <MissingCurves curves={curves.filter(({ points }) => points.length === 0)} />
    </QuestionCard>
  );
}

interface WalksTableProps {
  kind: Kind;
  curves: readonly RunCurve[];
  localNode: number | null;
}

function WalksTable({ kind, curves, localNode }: WalksTableProps) {
  if (curves.length === 0) return null;
  const values = [...new Set(curves.flatMap(({ points }) => points.map(({ x }) => x)))].sort((a, b) => a - b);
  return (
    <div>
      <h3>{kind.title}</h3>
      <TableScroll label={kind.title} minWidth={140 + 100 * curves.length}>
        <Table verticalSpacing={5}>
          <Table.Thead>
            <Table.Tr>
              <Table.Th className="hp-num">{kind.heading}</Table.Th>
              {curves.map(({ backing, footprint_bytes }) => (
                <Table.Th key={backing} scope="col" className="hp-num">
                  {backing}
                  {footprint_bytes != null && (
                    <span className="hp-dim"> over {formatBytes(footprint_bytes)}</span>
                  )}
                </Table.Th>
              ))}
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {values.map((x) => (
              <Table.Tr key={x}>
                <Table.Th scope="row" fw={400} className="hp-num">
                  {kind.format(x)}
                  {x === localNode && " (own)"}
                </Table.Th>
                {curves.map(({ backing, points, reason }) => {
                  const ns = points.find((point) => point.x === x)?.ns_p50 ?? null;
                  return (
                    <Table.Td key={backing} className="hp-num">
                      {ns === null ? <Unknown why={reason ?? "This was not measured."} /> : formatNs(ns)}
                    </Table.Td>
                  );
                })}
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </TableScroll>
    </div>
  );
}
