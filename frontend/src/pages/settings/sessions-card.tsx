import { Button } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { sessionsQuery, useEndSession } from "@/api/settings";
import type { BrowserSession } from "@/api/types";
import { AskFirst } from "@/components/ui/ask-first";
import { QueryView } from "@/components/ui/query-view";
import { QuestionCard } from "@/components/ui/question-card";
import { TableSkeleton } from "@/components/ui/skeletons";
import { Table } from "@/components/ui/table";
import { TableScroll } from "@/components/ui/table-scroll";
import { Known, LongName, When } from "@/components/ui/values";
import { formatCount } from "@/lib/units";
import { browserName } from "./browser-name";

/** Browsers that are signed in, each of which can be signed out from here. */
export function SessionsCard() {
  const query = useQuery(sessionsQuery());
  const [asked, ask] = useState<BrowserSession | null>(null);
  const end = useEndSession();
  return (
    <QueryView query={query} skeleton={<TableSkeleton rows={2} />}>
      {({ items }) => (
        <QuestionCard
          title={
            items.length === 1
              ? "One browser is signed in."
              : `${formatCount(items.length)} browsers are signed in.`
          }
        >
          <TableScroll label="Sessions" minWidth={0}>
            <Table verticalSpacing={6} stacks>
              <Table.Thead>
                <Table.Tr>
                  <Table.Th>Who</Table.Th>
                  <Table.Th>Browser</Table.Th>
                  <Table.Th>Ends</Table.Th>
                  <Table.Th />
                </Table.Tr>
              </Table.Thead>
              <Table.Tbody>
                {items.map((item) => (
                  <Table.Tr key={item.id} className="hp-top">
                    <Table.Th scope="row" fw={400}>
                      <LongName name={item.name} />
                      <div className="hp-dim hp-small">{item.role}</div>
                    </Table.Th>
                    <Table.Td label="Browser">
                      <Known value={browserName(item.user_agent)} />
                      <div className="hp-dim hp-small">
                        {item.address ?? "address unknown"}, since <When iso={item.created_at} />
                      </div>
                    </Table.Td>
                    <Table.Td label="Ends">
                      <When iso={item.expires_at} />
                    </Table.Td>
                    <Table.Td className="hp-num">
                      {item.is_current ? (
                        "this browser"
                      ) : (
                        <Button
                          size="compact-sm"
                          variant="default"
                          aria-label={`Sign out ${item.name}, ${browserName(item.user_agent) ?? "unknown browser"}`}
                          onClick={() => {
                            end.reset();
                            ask(item);
                          }}
                        >
                          Sign out
                        </Button>
                      )}
                    </Table.Td>
                  </Table.Tr>
                ))}
              </Table.Tbody>
            </Table>
          </TableScroll>
          {asked && (
            <AskFirst
              title="Sign this browser out?"
              keep="Keep it"
              act="Sign it out"
              isPending={end.isPending}
              error={end.error}
              onClose={() => ask(null)}
              onAct={() => end.mutate(asked.id, { onSuccess: () => ask(null) })}
            >
              <strong className="hp-anywhere">{asked.name}</strong> has to sign in again there.
            </AskFirst>
          )}
        </QuestionCard>
      )}
    </QueryView>
  );
}
