import { useQuery } from "@tanstack/react-query";
import { nodeQuery } from "@/api/nodes";
import type { Plan } from "@/api/types";
import { MemoryMap } from "@/components/memory-map/memory-map";
import { memoryBars } from "@/components/memory-map/node-memory";
import { QuestionCard } from "@/components/ui/question-card";
import { formatBytes } from "@/lib/units";
import { ledgerBars, overcommitBytes } from "./ledger-parts";

/** Where all of the node's memory goes under the plan, above what it is now. */
export function LedgerCard({ plan, nodeId }: { plan: Plan; nodeId: string | null }) {
  const { data: node } = useQuery({ ...nodeQuery(nodeId ?? ""), enabled: nodeId !== null });
  const now = node && nodeId !== null ? memoryBars(node.name, node.sample) : undefined;
  const free = plan.ledger.parts
    .filter(({ kind }) => kind === "free")
    .reduce((sum, part) => sum + part.bytes, 0);
  const over = overcommitBytes(plan);
  const total = formatBytes(plan.ledger.mem_total_bytes);
  const title =
    over > 0
      ? `The plan asks for ${formatBytes(over)} more than the ${total} there is.`
      : `${formatBytes(free)} of ${total} stays free under the plan.`;
  return (
    <QuestionCard title={title} description="All of MemTotal, to scale. The parts sum to it exactly.">
      <MemoryMap bars={ledgerBars(plan, now)} names={{ ghost: "Planned", real: "Now" }} />
    </QuestionCard>
  );
}
