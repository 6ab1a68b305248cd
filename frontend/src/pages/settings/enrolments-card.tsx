import { Button, Group } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { enrolmentRequestsQuery, useDecideEnrolment } from "@/api/settings";
import type { PendingEnrolment } from "@/api/types";
import { AskFirst } from "@/components/ui/ask-first";
import { QueryView } from "@/components/ui/query-view";
import { QuestionCard } from "@/components/ui/question-card";
import { TableSkeleton } from "@/components/ui/skeletons";
import { Table } from "@/components/ui/table";
import { TableScroll } from "@/components/ui/table-scroll";
import { LongName, When } from "@/components/ui/values";
import { formatCount } from "@/lib/units";

type Decision = "approved" | "refused";

/** Machines that are known, ask to enrol again and were not recognised; an administrator lets them in or not. */
export function EnrolmentsCard() {
  const query = useQuery(enrolmentRequestsQuery());
  const [asked, ask] = useState<{ item: PendingEnrolment; decision: Decision } | null>(null);
  const decide = useDecideEnrolment();
  const begin = (item: PendingEnrolment, decision: Decision) => {
    decide.reset();
    ask({ item, decision });
  };
  return (
    <QueryView query={query} skeleton={<TableSkeleton rows={1} />}>
      {({ items }) =>
        items.length > 0 && (
          <QuestionCard
            title={
              items.length === 1
                ? "One machine asks to enrol again."
                : `${formatCount(items.length)} machines ask to enrol again.`
            }
            description="Each is known, and something about it differs or its agent is still heard. A replaced agent on the same machine is let in by itself once the former one is silent."
          >
            <TableScroll label="Enrolment requests" minWidth={0}>
              <Table verticalSpacing={6} stacks>
                <Table.Thead>
                  <Table.Tr>
                    <Table.Th>Machine</Table.Th>
                    <Table.Th>Why it was not let in</Table.Th>
                    <Table.Th>Asked</Table.Th>
                    <Table.Th />
                  </Table.Tr>
                </Table.Thead>
                <Table.Tbody>
                  {items.map((item) => (
                    <Table.Tr key={item.id} className="hp-top">
                      <Table.Th scope="row" fw={400}>
                        <LongName name={item.node_name} />
                        <div className="hp-dim hp-small hp-anywhere">{item.node_machine_id}</div>
                      </Table.Th>
                      <Table.Td label="Why it was not let in">
                        {item.reason}
                        {item.decision && (
                          <div className="hp-dim hp-small">
                            {item.decision} by {item.decided_by}
                          </div>
                        )}
                      </Table.Td>
                      <Table.Td label="Asked">
                        <When iso={item.last_asked_at} />
                        <div className="hp-dim hp-small">from {item.address ?? "an unknown address"}</div>
                      </Table.Td>
                      <Table.Td className="hp-num">
                        <Group gap="xs" wrap="nowrap" justify="flex-end">
                          <Button
                            size="compact-sm"
                            variant="default"
                            aria-label={`Approve ${item.node_name}`}
                            onClick={() => begin(item, "approved")}
                          >
                            Approve
                          </Button>
                          <Button
                            size="compact-sm"
                            variant="default"
                            aria-label={`Refuse ${item.node_name}`}
                            onClick={() => begin(item, "refused")}
                          >
                            Refuse
                          </Button>
                        </Group>
                      </Table.Td>
                    </Table.Tr>
                  ))}
                </Table.Tbody>
              </Table>
            </TableScroll>
            {asked && (
              <AskFirst
                title={asked.decision === "approved" ? "Let this machine in?" : "Turn this machine away?"}
                keep="Decide later"
                act={asked.decision === "approved" ? "Let it in" : "Turn it away"}
                isPending={decide.isPending}
                error={decide.error}
                onClose={() => ask(null)}
                onAct={() =>
                  decide.mutate(
                    { id: asked.item.id, decision: asked.decision },
                    { onSuccess: () => ask(null) },
                  )
                }
              >
                {asked.decision === "approved" ? (
                  <>
                    <strong className="hp-anywhere">{asked.item.node_name}</strong> gets the agent token of
                    the machine when it asks next; the token before it ends.
                  </>
                ) : (
                  <>
                    <strong className="hp-anywhere">{asked.item.node_name}</strong> stays out until it is
                    approved.
                  </>
                )}
              </AskFirst>
            )}
          </QuestionCard>
        )
      }
    </QueryView>
  );
}
