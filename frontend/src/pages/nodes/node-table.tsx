import type { NodeSummary } from "@/api/types";
import { PageSizeBadge, StateBadge, SyntheticBadge } from "@/components/ui/badges";
import { Table } from "@/components/ui/table";
import { TableScroll } from "@/components/ui/table-scroll";
import { TextLink } from "@/components/ui/text-link";
import { Bytes, Known, Pages, Unknown, When } from "@/components/ui/values";
import { isFracturedNode, nodeObservations, poolBytes } from "@/lib/node-observations";
import { formatShare } from "@/lib/units";

/** Nodes as a table: what they are, what is reserved, and what stands out. */
export function NodeTable({ nodes, now }: { nodes: readonly NodeSummary[]; now: Date }) {
  return (
    <TableScroll label="Nodes" minWidth={760}>
      <Table highlightOnHover verticalSpacing={8} horizontalSpacing={6}>
        <Table.Thead>
          <Table.Tr>
            <Table.Th>Node</Table.Th>
            <Table.Th>Processor</Table.Th>
            <Table.Th className="hp-num">Memory</Table.Th>
            <Table.Th>Pools</Table.Th>
            <Table.Th className="hp-num">Used</Table.Th>
            <Table.Th className="hp-num">2 MiB entry covers</Table.Th>
            <Table.Th>State</Table.Th>
            <Table.Th className="hp-num">Last report</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {nodes.map((node) => (
            <NodeRow key={node.id} node={node} now={now} />
          ))}
        </Table.Tbody>
      </Table>
    </TableScroll>
  );
}

function NodeRow({ node, now }: { node: NodeSummary; now: Date }) {
  const { reserved, used } = poolBytes(node.pools);
  const observations = nodeObservations(node, now);
  const attention = observations.filter(({ state }) => state === "attention").length;
  const filled = node.pools.filter((pool) => pool.nr_hugepages > 0);
  return (
    <Table.Tr>
      <Table.Th scope="row">
        <TextLink to="/nodes/$nodeId" params={{ nodeId: node.id }}>
          {node.name}
        </TextLink>
        {node.synthetic && (
          <>
            {" "}
            <SyntheticBadge />
          </>
        )}
      </Table.Th>
      <Table.Td>
        <Known value={node.cpu_brand} />
        <div className="hp-dim hp-small">
          {node.architecture}
          {node.virtualised === null ? "" : node.virtualised ? ", virtual" : ", physical"}
        </div>
      </Table.Td>
      <Table.Td className="hp-num">
        <Bytes value={node.mem_total_bytes} />
      </Table.Td>
      <Table.Td>
        {filled.length === 0 ? (
          <span className="hp-dim">None reserved</span>
        ) : (
          filled.map((pool) => (
            <div
              key={pool.page_bytes}
              style={{ display: "flex", gap: 8, alignItems: "center", paddingBlock: 1 }}
            >
              <PageSizeBadge pageBytes={pool.page_bytes} kind="hugetlb" />
              <Pages count={pool.nr_hugepages} pageBytes={pool.page_bytes} />
            </div>
          ))
        )}
      </Table.Td>
      <Table.Td className="hp-num">
        {reserved === 0 ? "" : used === null ? <Unknown /> : formatShare(used / reserved)}
      </Table.Td>
      <Table.Td className="hp-num">
        <Bytes value={node.effective_granule_bytes} why="Not measured on this node." />
      </Table.Td>
      <Table.Td>
        {attention > 0 ? (
          <StateBadge state="attention" text={isFracturedNode(node) ? "Fractured" : "Idle pool"} />
        ) : observations.length > 0 ? (
          <StateBadge state="unknown" text={observations[0]?.code === "silent" ? "Silent" : "Not measured"} />
        ) : (
          <span className="hp-dim">Nothing stands out</span>
        )}
      </Table.Td>
      <Table.Td className="hp-num">
        <When iso={node.last_report_at} />
      </Table.Td>
    </Table.Tr>
  );
}
