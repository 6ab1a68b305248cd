import { Button } from "@mantine/core";
import { type PlanStep, usePlanStep } from "@/api/plans";
import { ApiError } from "@/api/problem";
import { useMayApprove, useMayPlan } from "@/api/session";
import type { PlanSummary } from "@/api/types";
import { ErrorState } from "@/components/ui/states";
import classes from "./plan-buttons.module.css";

interface Step {
  step: PlanStep;
  label: string;
  /** Not what to do next: it takes the last step back, or goes on against what the page says. */
  isAside?: boolean;
  needsApprover?: boolean;
}

/** What can be decided next about a plan, each with one click. */
export function nextSteps(
  plan: Pick<PlanSummary, "state" | "in_force" | "node_id" | "stale">,
): readonly Step[] {
  switch (plan.state) {
    case "draft":
      return [{ step: "propose", label: "Propose" }];
    case "proposed":
      return [
        { step: "withdraw", label: "Take back", isAside: true },
        // The service refuses a plan whose node has changed: it is planned again.
        ...(plan.stale?.length ? [] : [{ step: "approve", label: "Approve", needsApprover: true } as const]),
      ];
    case "approved":
      return [
        { step: "withdraw", label: "Take approval back", isAside: true, needsApprover: true },
        ...(plan.node_id === null
          ? []
          : [
              plan.stale?.length
                ? ({ step: "in-force", label: "Put in force all the same", isAside: true } as const)
                : ({ step: "in-force", label: "Put in force" } as const),
            ]),
      ];
    case "in_force": {
      if (plan.in_force.some(({ answer }) => answer === "yes")) return [];
      const hasBegun = plan.in_force.some(({ answer }) => answer === "partly");
      const label = hasBegun ? "Take back" : "Take back: nothing happened yet";
      return [{ step: "end-in-force", label, isAside: true }];
    }
    default:
      return [];
  }
}

/** After the service refused to approve a plan of which it is not known whether it fits: its approver knows it now. */
export function withKnownDoubt(steps: readonly Step[], refusal: Error | null): readonly Step[] {
  if (!(refusal instanceof ApiError && refusal.type.endsWith("/plan-fit-unknown"))) return steps;
  return steps.map((step) =>
    step.step === "approve"
      ? { ...step, step: "approve-unknown-fit", label: "Approve without knowing it" }
      : step,
  );
}

/** The next decisions about a plan, for who may make them; a refusal is said beneath. */
export function PlanButtons({ plan, size = "sm" }: { plan: PlanSummary; size?: "sm" | "compact-sm" }) {
  const mayPlan = useMayPlan();
  const mayApprove = useMayApprove();
  const step = usePlanStep(plan);
  const allowed = nextSteps(plan).filter(({ needsApprover }) => (needsApprover ? mayApprove : mayPlan));
  const steps = withKnownDoubt(allowed, step.error);
  if (steps.length === 0) return null;
  return (
    <div>
      <div className={classes.steps} data-size={size}>
        {steps.map(({ step: name, label, isAside }) => (
          <Button
            key={name}
            size={size}
            variant={isAside ? "default" : "filled"}
            loading={step.isPending && step.variables === name}
            disabled={step.isPending}
            onClick={() => step.mutate(name)}
          >
            {label}
          </Button>
        ))}
      </div>
      {step.isError && <ErrorState error={step.error} bare />}
    </div>
  );
}
