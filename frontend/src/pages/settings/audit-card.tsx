import { Button, Group, NativeSelect, TextInput } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { useInfiniteQuery } from "@tanstack/react-query";
import { useState } from "react";
import { csvPath } from "@/api/nodes";
import { type AuditFilter, auditQuery } from "@/api/settings";
import type { AuditEntry } from "@/api/types";
import { QuestionCard } from "@/components/ui/question-card";
import { TableSkeleton } from "@/components/ui/skeletons";
import { ErrorState, NothingMatches } from "@/components/ui/states";
import { Table } from "@/components/ui/table";
import { TableScroll } from "@/components/ui/table-scroll";
import { LongName, When } from "@/components/ui/values";
import classes from "./audit-card.module.css";
import { ACTION_CHOICES, actionWords } from "./audit-words";

const TYPING_MS = 250;

/** Details as "name: ci, role: viewer"; nested values as JSON. */
function detailText(detail: AuditEntry["detail"]): string {
  return Object.entries(detail)
    .filter(([, value]) => value !== null)
    .map(([name, value]) => `${name}: ${typeof value === "object" ? JSON.stringify(value) : String(value)}`)
    .join(", ");
}

/** Who changed what, when and from where; filtered on the server, and all of it as CSV. */
export function AuditCard() {
  const [actor, setActor] = useState("");
  const [action, setAction] = useState("");
  // Texts, not an object: a new object at each drawing would be a change at each drawing.
  const [by] = useDebouncedValue(actor.trim(), TYPING_MS);
  const filter: AuditFilter = { ...(by ? { actor: by } : {}), ...(action ? { action } : {}) };
  const query = useInfiniteQuery(auditQuery(filter));
  const entries = query.data?.pages.flatMap((page) => page.items) ?? [];
  const isFiltered = Object.keys(filter).length > 0;
  const clear = () => {
    setActor("");
    setAction("");
  };
  return (
    <QuestionCard
      title="Who changed what?"
      description="Every change, newest first. The log itself is never changed."
      actions={
        <Button
          variant="default"
          size="compact-sm"
          component="a"
          href={csvPath("/api/v1/audit.csv", { ...filter })}
          download
        >
          CSV
        </Button>
      }
    >
      <Group gap="sm" align="end">
        <TextInput label="By whom" value={actor} onChange={(event) => setActor(event.currentTarget.value)} />
        <NativeSelect
          label="What was done"
          data={[{ value: "", label: "Anything" }, ...ACTION_CHOICES]}
          value={action}
          onChange={(event) => setAction(event.currentTarget.value)}
        />
      </Group>
      {query.isError && !query.data ? (
        <ErrorState error={query.error} onRetry={() => void query.refetch()} />
      ) : query.isPending ? (
        <div aria-busy="true" role="status" aria-label="Loading">
          <TableSkeleton rows={4} />
        </div>
      ) : entries.length === 0 && isFiltered && !query.hasNextPage ? (
        <NothingMatches what="change" onClear={clear} />
      ) : (
        <AuditTable entries={entries} />
      )}
      {query.hasNextPage && (
        <Button
          variant="default"
          size="sm"
          className="hp-start"
          loading={query.isFetchingNextPage}
          onClick={() => void query.fetchNextPage()}
        >
          Show earlier changes
        </Button>
      )}
    </QuestionCard>
  );
}

function AuditTable({ entries }: { entries: readonly AuditEntry[] }) {
  return (
    <TableScroll label="Changes" minWidth={0} maxHeight={480}>
      <Table verticalSpacing={5} stickyHeader className={classes.table}>
        <Table.Thead>
          <Table.Tr>
            <Table.Th>When</Table.Th>
            <Table.Th>Who</Table.Th>
            <Table.Th>What</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {entries.map((entry) => (
            <Table.Tr key={entry.id} className="hp-top">
              <Table.Td>
                <When iso={entry.at} />
              </Table.Td>
              <Table.Td>
                <LongName name={entry.actor_name} />
                <div className="hp-dim hp-small">{entry.address ?? "address unknown"}</div>
              </Table.Td>
              <Table.Td className="hp-anywhere">
                {actionWords(entry.action)}
                <div className="hp-dim hp-small">
                  {[`${entry.subject_kind} ${entry.subject_id}`, detailText(entry.detail)]
                    .filter(Boolean)
                    .join("; ")}
                </div>
              </Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </TableScroll>
  );
}
