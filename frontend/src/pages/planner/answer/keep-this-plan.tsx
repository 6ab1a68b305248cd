import { Button } from "@mantine/core";
import { useNavigate } from "@tanstack/react-router";
import { useKeepPlan } from "@/api/plans";
import { ErrorState } from "@/components/ui/states";

interface KeepThisPlanProps {
  /** What stands in the form when it is asked for. */
  current: () => { draft: { nodeId: string | null }; scenario: Record<string, unknown> };
  fits: boolean;
  /** Whether what stands in the form has no plan: what is shown is the plan of an earlier input. */
  hasProblem: boolean;
}

/** Freezes the plan and opens it: what is signed is what is kept. */
export function KeepThisPlan({ current, fits, hasProblem }: KeepThisPlanProps) {
  const keep = useKeepPlan();
  const navigate = useNavigate();
  return (
    <>
      <Button
        size="sm"
        disabled={!fits || hasProblem}
        loading={keep.isPending}
        onClick={() => {
          const { draft, scenario } = current();
          keep.mutate(
            { nodeId: draft.nodeId, scenario },
            { onSuccess: ({ id }) => void navigate({ to: "/plans/$planId", params: { planId: id } }) },
          );
        }}
      >
        Keep this plan
      </Button>
      <span className="hp-dim hp-small">
        {hasProblem
          ? "What stands in the form has no plan yet: this is the one before."
          : fits
            ? "It then has a digest, its files and a sheet to sign."
            : "As counted it has no room, so it is not kept."}
      </span>
      {keep.isError && <ErrorState error={keep.error} bare />}
    </>
  );
}
