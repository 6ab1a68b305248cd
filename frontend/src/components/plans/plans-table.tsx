import { useInfiniteQuery } from "@tanstack/react-query";
import { type PlanSelection, plansQuery } from "@/api/plans";
import type { PlanSummary } from "@/api/types";
import { MoreRows } from "@/components/ui/more-rows";
import { TableSkeleton } from "@/components/ui/skeletons";
import { ErrorState, StateText } from "@/components/ui/states";
import { Table } from "@/components/ui/table";
import { TableScroll } from "@/components/ui/table-scroll";
import { TextLink } from "@/components/ui/text-link";
import { Known, When } from "@/components/ui/values";
import { PlanButtons } from "./plan-buttons";
import { PlanStateBadge } from "./plan-state-badge";

interface PlansTableProps extends PlanSelection {
  /** What is said where there is none. */
  none: string;
  withNode?: boolean;
}

/** Kept plans, the newest first, each with its next decision. */
export function PlansTable({ none, withNode = false, ...selection }: PlansTableProps) {
  const query = useInfiniteQuery(plansQuery(selection));
  const plans = query.data?.pages.flatMap(({ items }) => items);
  if (!plans)
    return query.isError ? (
      <ErrorState error={query.error} onRetry={() => void query.refetch()} />
    ) : (
      <TableSkeleton rows={3} />
    );
  if (plans.length === 0) return <StateText>{none}</StateText>;
  return (
    <>
      <TableScroll label="Kept plans" minWidth={640}>
        <Table verticalSpacing={6} stacks>
          <Table.Thead>
            <Table.Tr>
              <Table.Th>Plan</Table.Th>
              {withNode && <Table.Th>Node</Table.Th>}
              <Table.Th>What</Table.Th>
              <Table.Th>State</Table.Th>
              <Table.Th>Kept</Table.Th>
              <Table.Th className="hp-num">Next</Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {plans.map((plan) => (
              <Line key={plan.id} plan={plan} withNode={withNode} />
            ))}
          </Table.Tbody>
        </Table>
      </TableScroll>
      <MoreRows query={query} what="plans" />
    </>
  );
}

function Line({ plan, withNode }: { plan: PlanSummary; withNode: boolean }) {
  return (
    <Table.Tr>
      <Table.Th scope="row">
        <TextLink to="/plans/$planId" params={{ planId: plan.id }} className="hp-mono hp-nowrap">
          {plan.short_digest ?? plan.id.slice(0, 8)}
        </TextLink>
      </Table.Th>
      {withNode && (
        <Table.Td label="Node" className="hp-anywhere">
          <Known value={plan.node_name} />
        </Table.Td>
      )}
      <Table.Td label="What" isText>
        {plan.headline}
      </Table.Td>
      <Table.Td label="State">
        <PlanStateBadge plan={plan} />
      </Table.Td>
      <Table.Td label="Kept">
        <When iso={plan.created_at} />
      </Table.Td>
      <Table.Td className="hp-num">
        <PlanButtons plan={plan} size="compact-sm" />
      </Table.Td>
    </Table.Tr>
  );
}
