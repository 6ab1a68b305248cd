import { List, Text, TextInput } from "@mantine/core";
import { useDeferredValue, useState } from "react";
import type { Evidence, PublishedResult } from "@/api/types";
import { Disclosure } from "@/components/ui/disclosure";
import { Hint } from "@/components/ui/hint";
import { SearchIcon } from "@/components/ui/icons";
import { QuestionCard } from "@/components/ui/question-card";
import { NothingMatches } from "@/components/ui/states";
import { Table } from "@/components/ui/table";
import { TableScroll } from "@/components/ui/table-scroll";
import { Known } from "@/components/ui/values";
import { formatPercentChange } from "@/lib/units";
import { SourceLink } from "./source-link";

/** Results that hold every word of the search, wherever it stands. */
function searchResults(items: readonly PublishedResult[], text: string): PublishedResult[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  return items.filter((item) => {
    const all = Object.values(item).join(" ").toLowerCase();
    return words.every((word) => all.includes(word));
  });
}

function gainText(gain: PublishedResult["gain_percent"]): string | null {
  return typeof gain === "number" ? formatPercentChange(gain / 100) : (gain ?? null);
}

/** A long text in three lines; all of it in the tooltip. */
function Long({ text }: { text: string | null }) {
  if (text === null) return <Known value={null} />;
  return (
    <Hint label={text} disabled={text.length < 60}>
      <Text component="span" inherit lineClamp={3} className="hp-anywhere">
        {text}
      </Text>
    </Hint>
  );
}

/** All published results, as their sources state them. */
export function PublishedCard({ evidence }: { evidence: Evidence }) {
  const [text, setText] = useState("");
  const items = searchResults(evidence.items, useDeferredValue(text));
  return (
    <QuestionCard
      title={`What have others published? ${evidence.items.length} results.`}
      description="As their sources state them. A gain above zero means that the second page size did better."
      actions={
        <TextInput
          aria-label="Search the published results"
          placeholder="Search"
          leftSection={<SearchIcon />}
          value={text}
          onChange={(event) => setText(event.currentTarget.value)}
          w={220}
        />
      }
    >
      {items.length === 0 ? (
        <NothingMatches what="published result" onClear={() => setText("")} />
      ) : (
        <TableScroll label="Published results" minWidth={760} maxHeight={560}>
          <Table verticalSpacing={6} stickyHeader>
            <Table.Thead>
              <Table.Tr>
                <Table.Th w="30%">Workload</Table.Th>
                <Table.Th w="24%">System</Table.Th>
                <Table.Th w="12%">Page sizes</Table.Th>
                <Table.Th w="12%">Gain (%)</Table.Th>
                <Table.Th w="22%">Source</Table.Th>
              </Table.Tr>
            </Table.Thead>
            <Table.Tbody>
              {items.map((item) => (
                <Table.Tr key={item.id} className="hp-top">
                  <Table.Td>
                    <Long text={item.workload} />
                    {item.engine && <div className="hp-dim hp-small">{item.engine}</div>}
                  </Table.Td>
                  <Table.Td>
                    <Long text={item.system} />
                  </Table.Td>
                  <Table.Td>{[item.page_size_a, item.page_size_b].filter(Boolean).join(" to ")}</Table.Td>
                  <Table.Td>
                    <Long text={gainText(item.gain_percent)} />
                  </Table.Td>
                  <Table.Td className="hp-small">
                    <SourceLink source={item.source} />
                  </Table.Td>
                </Table.Tr>
              ))}
            </Table.Tbody>
          </Table>
        </TableScroll>
      )}
      {evidence.not_found.length > 0 && (
        <Disclosure label={`${evidence.not_found.length} results were looked for and not found`}>
          <List size="sm">
            {evidence.not_found.map((entry) => (
              <List.Item key={entry}>{entry}</List.Item>
            ))}
          </List>
        </Disclosure>
      )}
    </QuestionCard>
  );
}
