import { List } from "@mantine/core";
import type { Plan, Term } from "@/api/types";
import { type Source, SourceBadge } from "@/components/ui/badges";
import { Disclosure } from "@/components/ui/disclosure";
import { FoldCard } from "@/components/ui/fold-card";
import { Table } from "@/components/ui/table";
import { TableScroll } from "@/components/ui/table-scroll";
import { Term as Explained } from "@/components/ui/term";

interface InputRow {
  key: string;
  of: string;
  name: string;
  value: string;
  source: Source;
  changes: string;
}

const RANK: Partial<Record<Source, number>> = { unknown: 0, assumed: 1, catalogue: 2, cpuid: 3 };

/** Every input that a figure of the plan rests on, once; what is least certain comes first. */
function inputRows(plan: Plan): InputRow[] {
  const rows = new Map<string, InputRow>();
  const add = (of: string, changes: string, terms: readonly Term[]) => {
    for (const { name, value, source } of terms) {
      const key = `${of}:${name}:${value}`;
      const known = rows.get(key);
      if (!known) rows.set(key, { key, of, name, value, source: source as Source, changes });
      else if (!known.changes.includes(changes)) known.changes = `${known.changes}, ${changes}`;
    }
  };
  for (const gain of plan.gains) add(gain.instance, "gain", gain.inputs);
  for (const instance of plan.instances)
    for (const segment of instance.demand.segments)
      add(instance.name, "page count", segment.explanation.inputs);
  for (const pool of plan.pools) add("pool", "page count", pool.explanation?.inputs ?? []);
  for (const part of plan.ledger.parts) add(part.name, "memory", part.explanation?.inputs ?? []);
  const rank = ({ source }: InputRow) => RANK[source] ?? 4;
  return [...rows.values()].sort((a, b) => rank(a) - rank(b) || a.of.localeCompare(b.of));
}

/** The card's one sentence. What is unknown in a row, a note or a finding is never called known. */
export function inputsTitle(plan: Plan): string {
  const rows = inputRows(plan);
  const assumed = rows.filter(({ source }) => source === "assumed").length;
  const unknown = plan.unknowns.length + rows.filter(({ source }) => source === "unknown").length;
  const undecided = plan.findings.filter(({ state }) => state === "unknown").length;
  if (assumed + unknown > 0)
    return `The plan rests on ${count(assumed, "assumed input", "assumed inputs")}, and ${unknown} ${unknown === 1 ? "is" : "are"} unknown.`;
  if (undecided > 0)
    return `Every input is measured, observed or given, but ${count(undecided, "finding is", "findings are")} unknown.`;
  return "Every input is measured, observed or given.";
}

function count(number: number, one: string, many: string): string {
  return `${number} ${number === 1 ? one : many}`;
}

/** Where each number comes from: a table, never prose. */
export function InputsCard({ plan }: { plan: Plan }) {
  const rows = inputRows(plan);
  const title = inputsTitle(plan);
  return (
    <div>
      <FoldCard title={title}>
        {plan.unknowns.length > 0 && (
          <List size="sm" icon={<SourceBadge source="unknown" />}>
            {plan.unknowns.map((note) => (
              <List.Item key={note}>{note}</List.Item>
            ))}
          </List>
        )}
        {plan.assumptions.length > 0 && (
          <List size="sm" icon={<SourceBadge source="assumed" />}>
            {plan.assumptions.map((note) => (
              <List.Item key={note}>{note}</List.Item>
            ))}
          </List>
        )}
        <Disclosure label={`All ${rows.length} inputs with their sources`}>
          <TableScroll label="Inputs of the plan" minWidth={560} maxHeight={480}>
            <Table verticalSpacing={4} stickyHeader>
              <Table.Thead>
                <Table.Tr>
                  <Table.Th>Input</Table.Th>
                  <Table.Th>Of</Table.Th>
                  <Table.Th>Value</Table.Th>
                  <Table.Th>
                    <Explained name="source">Source</Explained>
                  </Table.Th>
                  <Table.Th>Would change</Table.Th>
                </Table.Tr>
              </Table.Thead>
              <Table.Tbody>
                {rows.map(({ key, of, name, value, source, changes }) => (
                  <Table.Tr key={key}>
                    <Table.Th scope="row" fw={400}>
                      {name}
                    </Table.Th>
                    <Table.Td>{of}</Table.Td>
                    <Table.Td className="hp-anywhere">{value}</Table.Td>
                    <Table.Td>
                      <SourceBadge source={source} />
                    </Table.Td>
                    <Table.Td>{changes}</Table.Td>
                  </Table.Tr>
                ))}
              </Table.Tbody>
            </Table>
          </TableScroll>
        </Disclosure>
      </FoldCard>
    </div>
  );
}
