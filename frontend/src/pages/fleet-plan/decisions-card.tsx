import { Button, Group } from "@mantine/core";
import { useInfiniteQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useDecideRows } from "@/api/fleet";
import { plansQuery } from "@/api/plans";
import { useMayApprove, useMayPlan } from "@/api/session";
import type { FleetRowsDecided, FleetRowsDecision } from "@/api/types";
import { PlansTable } from "@/components/plans/plans-table";
import { Disclosure } from "@/components/ui/disclosure";
import { QuestionCard } from "@/components/ui/question-card";
import { ErrorState, StateText } from "@/components/ui/states";
import { formatCount } from "@/lib/units";

type Decision = FleetRowsDecision["to"];

const DONE: Record<Decision, string> = { propose: "proposed", approve: "approved", in_force: "put in force" };

/** All rows at once; a row of the groups below decides about its own nodes alone. */
export function DecisionsCard({ jobId, nodes }: { jobId: string; nodes: number }) {
  const kept = useInfiniteQuery(plansQuery({ fleetPlanId: jobId }));
  const hasKept = (kept.data?.pages[0]?.items.length ?? 0) > 0;
  const mayPlan = useMayPlan();
  if (!mayPlan) return null;
  return (
    <QuestionCard
      title="Who decides about these plans?"
      description="Each node gets a plan of its own, with its digest and files. A group can be decided about alone, in its row."
    >
      <Decisions jobId={jobId} nodes={nodes} />
      {hasKept && (
        <Disclosure label="The plans of its nodes">
          <PlansTable fleetPlanId={jobId} withNode none="No plan is kept yet." />
        </Disclosure>
      )}
    </QuestionCard>
  );
}

interface DecisionsProps {
  jobId: string;
  nodes: number;
  /** One group of the plan; without it, all of them. */
  group?: number;
}

/** A decision about the fleet plan, or about one of its groups, is one about each of its rows. */
export function Decisions({ jobId, nodes, group }: DecisionsProps) {
  const mayPlan = useMayPlan();
  const mayApprove = useMayApprove();
  const [soFar, setSoFar] = useState<FleetRowsDecided | null>(null);
  const decide = useDecideRows(jobId, group, setSoFar);
  const hasProposed = useHasPlans(jobId, "proposed");
  const hasApproved = useHasPlans(jobId, "approved");
  if (!mayPlan) return null;
  const choices: readonly { to: Decision; label: string; shown: boolean }[] = [
    { to: "propose", label: `Propose all ${formatCount(nodes)}`, shown: true },
    { to: "approve", label: "Approve the proposed", shown: mayApprove && hasProposed },
    { to: "in_force", label: "Put the approved in force", shown: hasApproved },
  ];
  return (
    <div>
      <Group gap={6} my={6}>
        {choices
          // What is being decided stays until it is.
          .filter(({ to, shown }) => shown || (decide.isPending && decide.variables === to))
          .map(({ to, label }) => (
            <Button
              key={to}
              size="compact-sm"
              variant={to === "approve" ? "filled" : "default"}
              disabled={decide.isPending}
              loading={decide.isPending && decide.variables === to}
              onClick={() => {
                setSoFar(null);
                decide.mutate(to);
              }}
            >
              {label}
            </Button>
          ))}
      </Group>
      <div role="status">{soFar && decide.variables && <Progress to={decide.variables} soFar={soFar} />}</div>
      {decide.isError && <ErrorState error={decide.error} bare />}
    </div>
  );
}

/** Whether plans of the fleet plan wait in a state. */
function useHasPlans(jobId: string, state: "proposed" | "approved"): boolean {
  const { data } = useInfiniteQuery(plansQuery({ fleetPlanId: jobId, state }));
  return (data?.pages[0]?.items.length ?? 0) > 0;
}

function Progress({ to, soFar }: { to: Decision; soFar: FleetRowsDecided }) {
  const { done, already, skipped, next } = soFar;
  return (
    <>
      <StateText>
        {formatCount(done)} {DONE[to]}
        {already > 0 ? `, ${formatCount(already)} were already` : ""}
        {skipped.length > 0 ? `, ${formatCount(skipped.length)} left as they are` : ""}
        {next === null ? "." : "; it goes on."}
      </StateText>
      {skipped.length > 0 && (
        <Disclosure label="Why some were left">
          <ul>
            {skipped.map(({ node_id: id, reason }) => (
              <li key={id}>{reason}</li>
            ))}
          </ul>
        </Disclosure>
      )}
    </>
  );
}
