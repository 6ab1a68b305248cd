import type { FleetPart } from "@/api/types";
import { DenseValues } from "@/components/ui/hint";
import { QuestionCard } from "@/components/ui/question-card";
import { Table } from "@/components/ui/table";
import { TableScroll } from "@/components/ui/table-scroll";
import { Term } from "@/components/ui/term";
import { TextLink } from "@/components/ui/text-link";
import { Bytes, Unknown } from "@/components/ui/values";
import { formatCount } from "@/lib/units";
import type { NodeSelection } from "@/search";

const SHOWN = 10;

/** The fleet by machine type, the most nodes first, each with a way to its nodes. */
export default function MachinesCard({
  parts,
  scope,
}: {
  parts: readonly FleetPart[];
  scope: NodeSelection;
}) {
  return (
    <QuestionCard title="Which machines are these?" description="By processor and hypervisor.">
      <TableScroll label="Machine types" minWidth={640}>
        <DenseValues>
          <Table verticalSpacing={6} stacks>
            <Table.Thead>
              <Table.Tr>
                <Table.Th>Machine type</Table.Th>
                <Table.Th className="hp-num">Nodes</Table.Th>
                <Table.Th className="hp-num">Memory</Table.Th>
                <Table.Th className="hp-num">
                  <Term name="huge-page-pool">In pools</Term>
                </Table.Th>
                <Table.Th className="hp-num">
                  <Term name="idle">Idle</Term>
                </Table.Th>
                <Table.Th className="hp-num">With problems</Table.Th>
                <Table.Th className="hp-num">
                  <Term name="plan-in-force">Short of plan</Term>
                </Table.Th>
              </Table.Tr>
            </Table.Thead>
            <Table.Tbody>
              {parts.slice(0, SHOWN).map((part) => (
                <Table.Tr key={part.key ?? ""}>
                  <Table.Th scope="row">
                    {part.key ? (
                      <TextLink to="/nodes" search={{ ...scope, machine_type: part.key }}>
                        {part.key}
                      </TextLink>
                    ) : (
                      <Unknown />
                    )}
                  </Table.Th>
                  <Table.Td className="hp-num" label="Nodes">
                    {formatCount(part.nodes)}
                  </Table.Td>
                  <Table.Td className="hp-num" label="Memory">
                    <Bytes value={part.mem_total_bytes} />
                  </Table.Td>
                  <Table.Td className="hp-num" label="In pools">
                    <Bytes value={part.pool_bytes} />
                  </Table.Td>
                  <Table.Td className="hp-num" label="Idle">
                    <Bytes value={part.pool_idle_bytes} />
                  </Table.Td>
                  <Table.Td className="hp-num" label="With problems">
                    {formatCount(part.nodes_wrong)} wrong, {formatCount(part.nodes_attention)} attention
                  </Table.Td>
                  <Table.Td className="hp-num" label="Short of plan">
                    {formatCount(part.nodes_short)}
                  </Table.Td>
                </Table.Tr>
              ))}
            </Table.Tbody>
          </Table>
        </DenseValues>
      </TableScroll>
      {parts.length > SHOWN && (
        <TextLink to="/nodes" search={{ ...scope, view: "groups" }} className="hp-start">
          All groups of like nodes
        </TextLink>
      )}
    </QuestionCard>
  );
}
