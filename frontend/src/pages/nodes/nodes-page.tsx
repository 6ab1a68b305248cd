import { Button, Group, Select, TextInput } from "@mantine/core";
import { useDebouncedCallback } from "@mantine/hooks";
import { useInfiniteQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useState } from "react";
import { nodesQuery } from "@/api/nodes";
import { AddNode } from "@/components/ui/add-node";
import { SearchIcon } from "@/components/ui/icons";
import { PageHeader } from "@/components/ui/page-header";
import { QuestionCard } from "@/components/ui/question-card";
import { TableSkeleton } from "@/components/ui/skeletons";
import { EmptyState, ErrorState, NothingMatches } from "@/components/ui/states";
import { formatCount } from "@/lib/units";
import { NAME_CHARACTERS } from "@/search";
import { filterNodes, isFiltered } from "./node-filter";
import { NodeTable } from "./node-table";

const KINDS = [
  { value: "any", label: "Physical and virtual" },
  { value: "physical", label: "Physical" },
  { value: "virtual", label: "Virtual" },
];
const POOLS = [
  { value: "any", label: "With and without pools" },
  { value: "reserved", label: "Pools reserved" },
  { value: "none", label: "No pools" },
];

/** All nodes, searched and filtered; the address holds the filters. */
export function NodesPage() {
  const search = useSearch({ from: "/app/nodes" });
  const navigate = useNavigate({ from: "/nodes" });
  const query = useInfiniteQuery(nodesQuery(search.q ?? ""));
  const [text, setText] = useState(search.q ?? "");
  const set = (change: Partial<typeof search>) =>
    void navigate({ search: (old) => ({ ...old, ...change }), replace: true });
  const searchLater = useDebouncedCallback((q: string) => set({ q: q.trim() || undefined }), 250);
  const clear = () => {
    setText("");
    void navigate({ search: {}, replace: true });
  };

  const all = query.data?.pages.flatMap((page) => page.items);
  const shown = all && filterNodes(all, search);
  return (
    <>
      <PageHeader
        title="Nodes"
        headline={all && headline(all.length, query.hasNextPage, isFiltered(search), shown?.length ?? 0)}
      />
      <Group mb="md" gap="sm" align="flex-end">
        <TextInput
          label="Search by name"
          leftSection={<SearchIcon />}
          value={text}
          maxLength={NAME_CHARACTERS}
          onChange={(event) => {
            setText(event.currentTarget.value);
            searchLater(event.currentTarget.value);
          }}
          w={260}
        />
        <Select
          label="Kind"
          data={KINDS}
          value={search.kind ?? "any"}
          onChange={(value) => set({ kind: value === "any" ? undefined : (value as typeof search.kind) })}
          allowDeselect={false}
          w={210}
        />
        <Select
          label="Huge pages"
          data={POOLS}
          value={search.pools ?? "any"}
          onChange={(value) => set({ pools: value === "any" ? undefined : (value as typeof search.pools) })}
          allowDeselect={false}
          w={220}
        />
      </Group>
      {query.isError && !all ? (
        <ErrorState error={query.error} onRetry={() => void query.refetch()} />
      ) : !all || !shown ? (
        <TableSkeleton rows={8} />
      ) : shown.length === 0 && isFiltered(search) ? (
        <NothingMatches what="node" onClear={clear} />
      ) : shown.length === 0 ? (
        <EmptyState title="No node has reported yet">
          <AddNode />
        </EmptyState>
      ) : (
        <QuestionCard title="Which node do you want to plan?">
          <NodeTable nodes={shown} now={new Date()} />
          {query.hasNextPage && (
            <Button
              variant="default"
              onClick={() => void query.fetchNextPage()}
              loading={query.isFetchingNextPage}
              className="hp-start"
            >
              Show more
            </Button>
          )}
        </QuestionCard>
      )}
    </>
  );
}

function headline(count: number, more: boolean, filtered: boolean, shown: number): string {
  const nodes = `${formatCount(count)}${more ? " or more" : ""} ${count === 1 ? "node" : "nodes"}`;
  if (filtered) return `${formatCount(shown)} of ${nodes} shown.`;
  return count === 0 ? "The fleet is empty." : `${nodes} in the fleet.`;
}
