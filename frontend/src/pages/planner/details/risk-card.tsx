import type { Plan } from "@/api/types";
import { IntervalChart, type IntervalRow } from "@/components/charts/interval-chart";
import { FoldCard } from "@/components/ui/fold-card";
import { StateText } from "@/components/ui/states";
import { Bytes } from "@/components/ui/values";
import { formatBytes, formatChance } from "@/lib/units";
import { token } from "@/theme/tokens";

/** How likely ordinary memory runs out on each NUMA node. With one NUMA node the answer above says it all. */
export function RiskCard({ plan }: { plan: Plan }) {
  const { probability, policy, numa_nodes: nodes } = plan.risk;
  if (!probability || nodes.length === 0) return null;
  // Only what is within the policy at its worst is drawn as fine.
  const color = ({ likely, high }: { likely: number; high: number }) =>
    token(likely > policy ? "state-wrong" : high > policy ? "state-attention" : "state-ok");
  const rows: IntervalRow[] = [
    ...nodes.map((node) => ({
      key: String(node.numa_node),
      name: `NUMA\u00a0node\u00a0${node.numa_node}`,
      range: node.probability,
      color: color(node.probability),
      extra: [<Bytes key="room" value={node.room_bytes} />],
    })),
    {
      key: "node",
      name: "Whole\u00a0node",
      range: probability,
      color: color(probability),
      extra: [""],
    },
  ];
  return (
    <FoldCard title={riskTitle(plan)} open={plan.risk.meets_policy === false}>
      <StateText>
        Probability that ordinary memory runs out, by what is bound to each NUMA node. Accepted:{" "}
        {formatChance(policy)}.
      </StateText>
      <IntervalChart
        title="Risk of running out by NUMA node"
        nameHeader="Where"
        valueHeader="Risk"
        extraHeaders={["Room there"]}
        format={formatChance}
        rows={rows}
      />
    </FoldCard>
  );
}

/** The NUMA node with the highest risk, in words. */
export function riskTitle(plan: Plan): string {
  const { numa_nodes: nodes, policy } = plan.risk;
  const worst = nodes.reduce((a, b) => (b.probability.likely > a.probability.likely ? b : a));
  const { likely, high } = worst.probability;
  const where = `NUMA node ${worst.numa_node}`;
  if (worst.room_bytes < 0) return `${where} lacks ${formatBytes(-worst.room_bytes)}.`;
  if (likely > policy) return `${where} runs out with a risk of ${formatChance(likely)}.`;
  if (high > policy) return `${where} may run out: the risk is up to ${formatChance(high)}.`;
  return "No NUMA node runs out by itself.";
}
