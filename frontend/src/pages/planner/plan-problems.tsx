import type { ApiError, FieldError } from "@/api/problem";
import { ErrorState, StateText } from "@/components/ui/states";

interface PlanProblemsProps {
  problem: ApiError | null;
  /** Errors that belong to no input of the form. */
  unplaced: readonly FieldError[];
  hasPlan: boolean;
  onRetry: () => void;
}

/** Why there is no plan of what stands in the form. */
export function PlanProblems({ problem, unplaced, hasPlan, onRetry }: PlanProblemsProps) {
  if (!problem) return null;
  // What a preview asks for by an address is its node.
  if (problem.status === 404)
    return (
      <div role="alert">
        <StateText>
          This node was removed, so nothing is planned on it. Choose another node, or describe one here.
          {hasPlan ? " Below is the last plan." : ""}
        </StateText>
      </div>
    );
  const count = problem.fieldErrors.length;
  if (count === 0 || unplaced.length > 0) return <ErrorState error={problem} onRetry={onRetry} />;
  return (
    <div role="alert">
      <StateText>
        No plan yet:{" "}
        {count === 1
          ? "one input is not valid. It is marked in the form."
          : `${count} inputs are not valid. They are marked in the form.`}
        {hasPlan ? " Below is the last plan." : ""}
      </StateText>
    </div>
  );
}
