import type { Plan } from "@/api/types";
import { FoldCard } from "@/components/ui/fold-card";
import { StateText } from "@/components/ui/states";
import { Table } from "@/components/ui/table";
import { Term } from "@/components/ui/term";
import { Bytes } from "@/components/ui/values";
import { formatBytes } from "@/lib/units";

/** What the kubelet will report once the plan is applied. */
export function KubernetesCard({ plan }: { plan: Plan }) {
  const view = plan.kubernetes;
  if (!view) return null;
  const names = [...new Set([...Object.keys(view.capacity), ...Object.keys(view.allocatable)])];
  const memory = view.allocatable.memory;
  return (
    <FoldCard
      title={
        memory === undefined
          ? "What will the kubelet report?"
          : `Pods can be given ${formatBytes(memory)} of ordinary memory.`
      }
    >
      {view.phantom_eviction_bytes > 0 && (
        <StateText>
          The kubelet counts {formatBytes(view.phantom_eviction_bytes)} of the pools as available memory, so
          it evicts that much too late.
        </StateText>
      )}
      <Table verticalSpacing={5}>
        <Table.Thead>
          <Table.Tr>
            <Table.Th>Resource</Table.Th>
            <Table.Th className="hp-num">Capacity</Table.Th>
            <Table.Th className="hp-num">
              <Term name="allocatable">Allocatable</Term>
            </Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {names.map((name) => (
            <Table.Tr key={name}>
              <Table.Th scope="row" fw={400} className="hp-mono">
                {name}
              </Table.Th>
              <Table.Td className="hp-num">
                <Bytes value={view.capacity[name]} />
              </Table.Td>
              <Table.Td className="hp-num">
                <Bytes value={view.allocatable[name]} />
              </Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </FoldCard>
  );
}
