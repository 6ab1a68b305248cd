import "@/theme/mantine-pages.css";
import { Button, Group, Menu, SegmentedControl } from "@mantine/core";
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useCallback } from "react";
import { fleetSummaryQuery } from "@/api/fleet";
import { csvPath, nodeListQuery, selectedNodesQuery } from "@/api/nodes";
import FirstVisit from "@/components/connect/first-visit";
import { CsvButton } from "@/components/ui/csv-button";
import { CheckIcon } from "@/components/ui/icons";
import { LinkButton } from "@/components/ui/link-button";
import { PageHeader } from "@/components/ui/page-header";
import { QuestionCard } from "@/components/ui/question-card";
import { TableSkeleton } from "@/components/ui/skeletons";
import { ErrorState, NothingMatches } from "@/components/ui/states";
import { When } from "@/components/ui/values";
import { formatBytes, formatCount, formatCounted } from "@/lib/units";
import { type NodeSelection, type NodesSearch, nodeSelection } from "@/search";
import { chosenColumns, NODE_COLUMNS, toggleColumn } from "./node-columns";
import { FilterChips, NodeFilters } from "./node-filters";
import { NodeGroups } from "./node-groups";
import { NodeTable } from "./node-table";

/** All nodes, searched, filtered and sorted by the server; the address holds what is shown. */
export function NodesPage() {
  const search = useSearch({ from: "/app/nodes" });
  const navigate = useNavigate({ from: "/nodes" });
  const set = (change: Partial<NodesSearch>) =>
    void navigate({ search: (old) => ({ ...old, ...change }), replace: true });
  const selection = nodeSelection({ ...search });
  const isFiltered = Object.values(selection).some((value) => value !== undefined);
  const everything = useQuery(fleetSummaryQuery());
  const matching = useQuery(fleetSummaryQuery(selection));
  const clear = () => void navigate({ search: ({ view, columns }) => ({ view, columns }), replace: true });

  if (everything.data?.nodes === 0)
    return (
      <>
        <PageHeader title="Nodes" headline="No node has reported yet." />
        <FirstVisit />
      </>
    );
  const found = matching.isPlaceholderData ? undefined : matching.data;
  return (
    <>
      <PageHeader
        title="Nodes"
        headline={
          found &&
          everything.data &&
          headline(found.nodes, everything.data.nodes, found.memory.pool_idle_bytes)
        }
        actions={
          found && found.nodes > 0 ? (
            <LinkButton to="/fleet-plans" search={isFiltered ? selection : { all: true }} variant="default">
              Fleet plan for {found.nodes === 1 ? "this node" : `these ${formatCount(found.nodes)} nodes`}
            </LinkButton>
          ) : undefined
        }
      />
      {matching.isError && found === undefined && (
        <ErrorState error={matching.error} onRetry={() => void matching.refetch()} />
      )}
      <NodeFilters selection={selection} fleet={everything.data} onChange={set} />
      <FilterChips selection={selection} fleet={everything.data} onChange={set} />
      <QuestionCard
        title={search.view === "groups" ? "Which nodes are alike?" : "Which node do you want to plan?"}
        description={
          search.view === "groups"
            ? "One machine type, the same memory to the GiB, the same NUMA nodes and pools."
            : undefined
        }
        actions={<Actions search={search} selection={selection} onChange={set} />}
      >
        {search.view === "groups" ? (
          <NodeGroups selection={selection} onClear={clear} />
        ) : (
          <NodeList
            search={search}
            total={found?.nodes}
            isFiltered={isFiltered}
            onChange={set}
            onClear={clear}
          />
        )}
      </QuestionCard>
    </>
  );
}

interface NodeListProps {
  search: NodesSearch;
  total: number | undefined;
  isFiltered: boolean;
  onChange: (change: Partial<NodesSearch>) => void;
  onClear: () => void;
}

function NodeList({ search, total, isFiltered, onChange, onClear }: NodeListProps) {
  const query = useInfiniteQuery(selectedNodesQuery(nodeListQuery(search)));
  const { fetchNextPage, isFetchingNextPage, hasNextPage, isFetchNextPageError } = query;
  const more = useCallback(() => {
    if (hasNextPage && !isFetchingNextPage && !isFetchNextPageError) void fetchNextPage();
  }, [hasNextPage, isFetchingNextPage, isFetchNextPageError, fetchNextPage]);
  const nodes = query.data?.pages.flatMap(({ items }) => items);
  if (!nodes)
    return query.isError ? (
      <ErrorState error={query.error} onRetry={() => void query.refetch()} />
    ) : (
      <div aria-busy="true" role="status" aria-label="Loading">
        <TableSkeleton rows={8} />
      </div>
    );
  if (nodes.length === 0 && isFiltered) return <NothingMatches what="node" onClear={onClear} />;
  // The count and the list are two answers: when the list has ended, the list is right.
  const count =
    hasNextPage && !query.isPlaceholderData ? Math.max(total ?? 0, nodes.length + 1) : nodes.length;
  return (
    <div className="hp-stale" data-stale={query.isPlaceholderData}>
      <NodeTable
        nodes={nodes}
        total={count}
        columns={chosenColumns(search.columns)}
        isChosen={search.columns !== undefined}
        search={search}
        onSort={(sort, down) =>
          onChange({ sort: sort === "name" ? undefined : sort, down: down || undefined })
        }
        onMore={more}
      />
      {isFetchNextPageError && <ErrorState error={query.error} onRetry={() => void fetchNextPage()} bare />}
      <Group gap="sm" mt="xs" className="hp-dim hp-small">
        <span>
          As of <When iso={new Date(query.dataUpdatedAt).toISOString()} />
        </span>
        <Button
          variant="default"
          size="compact-xs"
          onClick={() => void query.refetch()}
          loading={query.isRefetching && !query.isPlaceholderData}
        >
          Refresh
        </Button>
      </Group>
    </div>
  );
}

interface ActionsProps {
  search: NodesSearch;
  selection: NodeSelection;
  onChange: (change: Partial<NodesSearch>) => void;
}

function Actions({ search, selection, onChange }: ActionsProps) {
  const isGroups = search.view === "groups";
  const shown = new Set(chosenColumns(search.columns).map(({ key }) => key));
  return (
    <Group gap="sm">
      <SegmentedControl
        size="sm"
        aria-label="What is listed"
        data={[
          { value: "nodes", label: "Nodes" },
          { value: "groups", label: "Groups" },
        ]}
        value={search.view ?? "nodes"}
        onChange={(value) => onChange({ view: value === "groups" ? "groups" : undefined })}
      />
      {!isGroups && (
        <Menu position="bottom-end" closeOnItemClick={false}>
          <Menu.Target>
            <Button variant="default" size="sm">
              Columns
            </Button>
          </Menu.Target>
          <Menu.Dropdown>
            {NODE_COLUMNS.map(({ key, label }) => (
              <Menu.Item
                key={key}
                aria-label={`${shown.has(key) ? "Hide" : "Show"} ${label}`}
                leftSection={
                  <span className="hp-check-mark" data-shown={shown.has(key)}>
                    <CheckIcon />
                  </span>
                }
                onClick={() => onChange({ columns: toggleColumn(search.columns, key) })}
              >
                {label}
              </Menu.Item>
            ))}
          </Menu.Dropdown>
        </Menu>
      )}
      <CsvButton
        path={
          isGroups
            ? csvPath("/api/v1/fleet/groups.csv", { ...selection })
            : csvPath("/api/v1/nodes.csv", { ...nodeListQuery(search) })
        }
      />
    </Group>
  );
}

function headline(found: number, all: number, idleBytes: number): string {
  const nodes = formatCounted(all, "node");
  const idle = idleBytes > 0 ? ` ${formatBytes(idleBytes)} of huge pages are idle on them.` : "";
  return found === all ? `${nodes} in the fleet.${idle}` : `${formatCount(found)} of ${nodes} match.${idle}`;
}
