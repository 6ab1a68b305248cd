import { Checkbox } from "@mantine/core";
import type { Plan } from "@/api/types";
import { SourceBadge } from "@/components/ui/badges";
import { Hint } from "@/components/ui/hint";
import { StateText } from "@/components/ui/states";
import { Table } from "@/components/ui/table";
import { TableScroll } from "@/components/ui/table-scroll";
import { Bytes, LongName } from "@/components/ui/values";
import { formatBytes } from "@/lib/units";

interface ObservedWorkloadsProps {
  plan: Plan | null;
  exclude: readonly string[];
  onExclude: (names: string[]) => void;
}

/** What runs on the node as it was observed; each can be left out of the plan. */
export function ObservedWorkloads({ plan, exclude, onExclude }: ObservedWorkloadsProps) {
  const now = plan?.now;
  if (!now || now.tenants.length === 0) return null;
  const toggle = (name: string, isIn: boolean) =>
    onExclude(isIn ? exclude.filter((other) => other !== name) : [...exclude, name]);
  return (
    <>
      <StateText>
        As it runs today: {now.tenants.length} observed {now.tenants.length === 1 ? "workload" : "workloads"}{" "}
        <SourceBadge source="measured" />. Untick what will not run here.
      </StateText>
      <TableScroll label="Observed workloads" minWidth={220} maxHeight={300}>
        <Table verticalSpacing={3} horizontalSpacing={4}>
          <Table.Thead>
            <Table.Tr>
              <Table.Th>Workload</Table.Th>
              <Table.Th className="hp-num">Now</Table.Th>
              <Table.Th className="hp-num">Planned</Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {now.tenants.map((tenant) => (
              <Table.Tr key={tenant.key ?? tenant.name}>
                <Table.Th scope="row" fw={400}>
                  <Checkbox
                    size="xs"
                    label={<LongName name={tenant.name} />}
                    checked={!exclude.includes(tenant.name)}
                    onChange={(event) => toggle(tenant.name, event.currentTarget.checked)}
                  />
                </Table.Th>
                <Table.Td className="hp-num">
                  <Bytes value={tenant.now_bytes} />
                </Table.Td>
                <Table.Td className="hp-num">
                  {tenant.planned_bytes === null ? (
                    "left out"
                  ) : (
                    <Hint label={tenant.basis}>{formatBytes(tenant.planned_bytes)}</Hint>
                  )}
                </Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </TableScroll>
    </>
  );
}
