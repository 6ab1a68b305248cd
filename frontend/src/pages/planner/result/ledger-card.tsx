import type { NodeDetail, Plan } from "@/api/types";
import { MemoryMap, type ResizePool } from "@/components/memory-map/memory-map";
import { memoryBars } from "@/components/memory-map/node-memory";
import { QuestionCard } from "@/components/ui/question-card";
import { formatBytes } from "@/lib/units";
import { freeByNumaNode, freeBytes, ledgerBars, overcommitBytes } from "./ledger-parts";

interface LedgerCardProps {
  plan: Plan;
  node: NodeDetail | undefined;
  onResize?: ResizePool;
  canResize?: (pageBytes: number) => boolean;
}

/** Where all of the node's memory goes under the plan, above what it is now. */
export function LedgerCard({ plan, node, onResize, canResize }: LedgerCardProps) {
  // A plan names its node: memory of another one is never drawn beneath it.
  const now = node && node.name === plan.node ? memoryBars(node.name, node.sample) : undefined;
  return (
    <QuestionCard
      title={ledgerTitle(plan)}
      description="All of MemTotal, to scale. Drag the end of a pool, or move it with the arrow keys, to try another size."
    >
      <MemoryMap
        bars={ledgerBars(plan, now)}
        names={{ ghost: "Planned", real: "Now" }}
        onResize={onResize}
        canResize={canResize}
        legend="line"
      />
    </QuestionCard>
  );
}

/** What is missing and where, else what stays free. */
export function ledgerTitle(plan: Plan): string {
  const over = overcommitBytes(plan);
  const total = formatBytes(plan.ledger.mem_total_bytes);
  if (over === 0) return `${formatBytes(freeBytes(plan))} of ${total} stays free under the plan.`;
  const nodes = freeByNumaNode(plan);
  const short = [...nodes].filter(([, free]) => free < 0);
  if (nodes.size < 2) return `The plan asks for ${formatBytes(over)} more than the ${total} there is.`;
  return `${short.map(([id, free]) => `NUMA node ${id} lacks ${formatBytes(-free)}`).join(", ")} under the plan.`;
}
