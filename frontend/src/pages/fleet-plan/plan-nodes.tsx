import { Button } from "@mantine/core";
import { useInfiniteQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useOpenRow } from "@/api/fleet";
import { fleetPlanNodesQuery } from "@/api/fleet/lists";
import { useMayPlan } from "@/api/session";
import type { FleetPlanNode } from "@/api/types";
import { StateBadge } from "@/components/ui/badges";
import { DenseValues } from "@/components/ui/hint";
import { MoreRows } from "@/components/ui/more-rows";
import { TableSkeleton } from "@/components/ui/skeletons";
import { ErrorState, NothingMatches } from "@/components/ui/states";
import { Table } from "@/components/ui/table";
import { TableScroll } from "@/components/ui/table-scroll";
import { Term } from "@/components/ui/term";
import { TextLink } from "@/components/ui/text-link";
import { Bytes, Unknown } from "@/components/ui/values";
import { formatCount } from "@/lib/units";
import type { FleetPlanResultSearch } from "@/search";
import { withoutName } from "./fleet-plan-words";

/** Reasons per row. */
const SHOWN = 1;

const LOOKS = { wrong: "wrong", attention: "attention", fine: "ok" } as const;

interface PlanNodesProps {
  jobId: string;
  search: FleetPlanResultSearch;
  onClear?: () => void;
}

/** The nodes of a plan in the server's order: wrong, attention, then the rest by name. */
export function PlanNodes({ jobId, search, onClear }: PlanNodesProps) {
  const query = useInfiniteQuery(fleetPlanNodesQuery(jobId, search));
  const mayPlan = useMayPlan();
  const nodes = query.data?.pages.flatMap(({ items }) => items);
  if (!nodes)
    return query.isError ? (
      <ErrorState error={query.error} onRetry={() => void query.refetch()} />
    ) : (
      <TableSkeleton rows={6} />
    );
  if (nodes.length === 0 && onClear) return <NothingMatches what="node" onClear={onClear} />;
  return (
    <div className="hp-stale" data-stale={query.isPlaceholderData}>
      <TableScroll label="Nodes of the plan" minWidth={720}>
        <DenseValues>
          <Table verticalSpacing={6} stacks>
            <Table.Thead>
              <Table.Tr>
                <Table.Th>Node</Table.Th>
                <Table.Th>State</Table.Th>
                <Table.Th w="36%">Why</Table.Th>
                <Table.Th className="hp-num">Reserved</Table.Th>
                <Table.Th className="hp-num">Left free</Table.Th>
                <Table.Th className="hp-num">
                  <Term name="huge-page-pool">Pages missing now</Term>
                </Table.Th>
                <Table.Th className="hp-num">Pages too many</Table.Th>
                {mayPlan && <Table.Th className="hp-num">Plan</Table.Th>}
              </Table.Tr>
            </Table.Thead>
            <Table.Tbody>
              {nodes.map((node) => (
                <Line key={node.node_id} node={node} jobId={jobId} />
              ))}
            </Table.Tbody>
          </Table>
        </DenseValues>
      </TableScroll>
      <MoreRows query={query} what="nodes" />
    </div>
  );
}

/** Opens the plan of exactly this row. It is kept then, so that it stays what the row says. */
function OpenPlan({ jobId, node }: { jobId: string; node: FleetPlanNode }) {
  const open = useOpenRow(jobId);
  const navigate = useNavigate();
  if (node.group_number === null) return null;
  return (
    <>
      <Button
        size="compact-sm"
        variant="default"
        aria-label={`Open plan of ${node.name}`}
        loading={open.isPending}
        onClick={() =>
          open.mutate(node.node_id, {
            onSuccess: ({ id }) => void navigate({ to: "/plans/$planId", params: { planId: id } }),
          })
        }
      >
        Open plan
      </Button>
      {open.isError && <ErrorState error={open.error} bare />}
    </>
  );
}

function Line({ node, jobId }: { node: FleetPlanNode; jobId: string }) {
  const mayPlan = useMayPlan();
  return (
    <Table.Tr>
      <Table.Th scope="row">
        <TextLink to="/nodes/$nodeId" params={{ nodeId: node.node_id }} title={node.name} className="hp-name">
          {node.name}
        </TextLink>
      </Table.Th>
      <Table.Td label="State">
        <StateBadge
          state={LOOKS[node.severity]}
          text={node.severity === "wrong" && node.fits === false ? "Does not fit" : undefined}
        />
      </Table.Td>
      <Table.Td label="Why" isText className="hp-small">
        {node.exceptions.slice(0, SHOWN).map((text) => (
          <div key={text}>{withoutName(text, node.name)}</div>
        ))}
        {node.exceptions.length > SHOWN && (
          <div className="hp-dim" title={node.exceptions.slice(SHOWN).join("\n")}>
            and {node.exceptions.length - SHOWN} more, in its plan
          </div>
        )}
      </Table.Td>
      <Table.Td label="Reserved" className="hp-num">
        <Bytes value={node.locked_bytes} />
      </Table.Td>
      <Table.Td label="Left free" className="hp-num">
        <Bytes value={node.free_bytes} />
      </Table.Td>
      <Table.Td label="Pages missing now" className="hp-num">
        {pages(node.missing_pages)}
      </Table.Td>
      <Table.Td label="Pages too many" className="hp-num">
        {pages(node.idle_pages)}
      </Table.Td>
      {mayPlan && (
        <Table.Td className="hp-num">
          <OpenPlan jobId={jobId} node={node} />
        </Table.Td>
      )}
    </Table.Tr>
  );
}

function pages(count: number | null) {
  return count === null ? <Unknown /> : formatCount(count);
}
