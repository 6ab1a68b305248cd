import { useInfiniteQuery } from "@tanstack/react-query";
import { nodeGroupsQuery } from "@/api/fleet/lists";
import type { NodeGroup } from "@/api/types";
import { PageSizeBadge } from "@/components/ui/badges";
import { DenseValues } from "@/components/ui/hint";
import { MoreRows } from "@/components/ui/more-rows";
import { TableSkeleton } from "@/components/ui/skeletons";
import { ErrorState, NothingMatches } from "@/components/ui/states";
import { Table } from "@/components/ui/table";
import { TableScroll } from "@/components/ui/table-scroll";
import { Term } from "@/components/ui/term";
import { TextLink } from "@/components/ui/text-link";
import { Known } from "@/components/ui/values";
import { formatBytes, formatCount } from "@/lib/units";
import type { NodeSelection } from "@/search";

interface NodeGroupsProps {
  selection: NodeSelection;
  onClear: () => void;
}

/** Groups of like nodes, the largest first: a plan for one is a plan for all of it. */
export function NodeGroups({ selection, onClear }: NodeGroupsProps) {
  const query = useInfiniteQuery(nodeGroupsQuery(selection));
  const groups = query.data?.pages.flatMap(({ items }) => items);
  if (!groups)
    return query.isError ? (
      <ErrorState error={query.error} onRetry={() => void query.refetch()} />
    ) : (
      <TableSkeleton rows={8} />
    );
  if (groups.length === 0) return <NothingMatches what="node" onClear={onClear} />;
  return (
    <>
      <TableScroll label="Groups of like nodes" minWidth={720}>
        <DenseValues>
          <Table verticalSpacing={7}>
            <Table.Thead>
              <Table.Tr>
                <Table.Th>Machine type</Table.Th>
                <Table.Th className="hp-num">Nodes</Table.Th>
                <Table.Th className="hp-num">Memory each</Table.Th>
                <Table.Th className="hp-num">
                  <Term name="numa-node">NUMA nodes</Term>
                </Table.Th>
                <Table.Th>
                  <Term name="huge-page-pool">Pools each</Term>
                </Table.Th>
                <Table.Th className="hp-num">With problems</Table.Th>
                <Table.Th className="hp-num">Measured</Table.Th>
                <Table.Th>
                  <Term name="plan-in-force">Plan</Term>
                </Table.Th>
              </Table.Tr>
            </Table.Thead>
            <Table.Tbody>
              {groups.map((group) => (
                <Group key={group.group_key} group={group} />
              ))}
            </Table.Tbody>
          </Table>
        </DenseValues>
      </TableScroll>
      <MoreRows query={query} what="groups" />
    </>
  );
}

function Group({ group }: { group: NodeGroup }) {
  const { mem_total_bytes_min: least, mem_total_bytes_max: most } = group;
  const [low, high] = [formatBytes(least), formatBytes(most)];
  const filled = group.pools.filter(({ nr_hugepages: pages = 0 }) => pages > 0);
  return (
    <Table.Tr>
      <Table.Th scope="row">
        <Known value={group.machine_type} />
        <div className="hp-dim hp-small">such as {group.example_node_name}</div>
      </Table.Th>
      <Table.Td className="hp-num">
        <TextLink to="/nodes" search={{ group: group.group_key }}>
          {formatCount(group.nodes)}
        </TextLink>
      </Table.Td>
      <Table.Td className="hp-num">{low === high ? low : `${low} to ${high}`}</Table.Td>
      <Table.Td className="hp-num">{formatCount(group.numa_node_count)}</Table.Td>
      <Table.Td>
        {filled.length === 0 ? (
          <span className="hp-dim">none</span>
        ) : (
          filled.map(({ page_bytes: size = 0, nr_hugepages: pages = 0 }) => (
            <div key={size} className="hp-nowrap">
              <PageSizeBadge pageBytes={size} kind="hugetlb" /> {formatCount(pages)}
            </div>
          ))
        )}
      </Table.Td>
      <Table.Td className="hp-num">
        {formatCount(group.nodes_wrong)} wrong, {formatCount(group.nodes_attention)} attention
      </Table.Td>
      <Table.Td className="hp-num">{formatCount(group.nodes_measured)}</Table.Td>
      <Table.Td className="hp-nowrap">
        <TextLink to="/planner" search={{ node: group.example_node_id }}>
          one
        </TextLink>
        {" or "}
        <TextLink to="/fleet-plans" search={{ group: group.group_key }}>
          all
        </TextLink>
      </Table.Td>
    </Table.Tr>
  );
}
