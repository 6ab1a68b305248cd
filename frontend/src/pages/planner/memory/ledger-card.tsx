import type { PlanPreview } from "@/api/types";
import { MemoryMap, type ResizePool } from "@/components/memory-map/memory-map";
import { QuestionCard } from "@/components/ui/question-card";
import { formatBytes } from "@/lib/units";
import { ledgerBars } from "./ledger-parts";

interface LedgerCardProps {
  shown: PlanPreview;
  onResize: ResizePool;
  canResize: (pageBytes: number) => boolean;
}

/** Where all of the node's memory goes under the plan, above what it is now. */
export function LedgerCard({ shown, onResize, canResize }: LedgerCardProps) {
  return (
    <QuestionCard
      title={ledgerTitle(shown)}
      description="All of MemTotal, to scale. Drag the end of a pool, or move it with the arrow keys, to try another size."
    >
      <MemoryMap
        bars={ledgerBars(shown.plan)}
        names={{ ghost: "Planned", real: "Now" }}
        onResize={onResize}
        canResize={canResize}
        legend="line"
      />
    </QuestionCard>
  );
}

/** What is missing, else what programs can still get. */
export function ledgerTitle({ plan, verdict }: Pick<PlanPreview, "plan" | "verdict">): string {
  if (plan.shortfall) return plan.shortfall.reason;
  const total = formatBytes(plan.ledger.mem_total_bytes);
  const left = verdict.available_planned_bytes ?? null;
  if (left === null) return `How much of ${total} stays available to programs is not known.`;
  return `${formatBytes(left)} of ${total} stays available to programs.`;
}
