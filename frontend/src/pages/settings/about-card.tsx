import { useQuery } from "@tanstack/react-query";
import { aboutQuery } from "@/api/settings";
import { QueryView } from "@/components/ui/query-view";
import { QuestionCard } from "@/components/ui/question-card";
import { TableSkeleton } from "@/components/ui/skeletons";
import { Table } from "@/components/ui/table";
import { TableScroll } from "@/components/ui/table-scroll";
import { formatCount } from "@/lib/units";

/** Which version this is, and how long it keeps what. */
export function AboutCard() {
  const query = useQuery(aboutQuery());
  return (
    <QueryView query={query} skeleton={<TableSkeleton rows={4} />}>
      {({ version, api_docs_url: docs, retention }) => (
        <QuestionCard
          title="What is kept, and for how long?"
          description={
            <>
              hugeplan {version}, Apache-2.0.{" "}
              <a href={docs} className="hp-anchor">
                The API's documentation
              </a>
              . A variable of the service changes each time; it is read at its start.
            </>
          }
        >
          <TableScroll label="Retention" minWidth={0}>
            <Table verticalSpacing={5}>
              <Table.Thead>
                <Table.Tr>
                  <Table.Th>What</Table.Th>
                  <Table.Th className="hp-num">Days</Table.Th>
                </Table.Tr>
              </Table.Thead>
              <Table.Tbody>
                {retention.map(({ description, days, setting }) => (
                  <Table.Tr key={setting} className="hp-top">
                    <Table.Th scope="row" fw={400}>
                      {description}
                      <div className="hp-dim hp-small hp-mono hp-anywhere">{setting}</div>
                    </Table.Th>
                    <Table.Td className="hp-num">{days === null ? "for ever" : formatCount(days)}</Table.Td>
                  </Table.Tr>
                ))}
              </Table.Tbody>
            </Table>
          </TableScroll>
        </QuestionCard>
      )}
    </QueryView>
  );
}
