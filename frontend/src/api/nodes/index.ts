import {
  infiniteQueryOptions,
  keepPreviousData,
  queryOptions,
  useMutation,
  useQueryClient,
} from "@tanstack/react-query";
import type { NodesSearch } from "@/search";
import { client, unwrap } from "../client";
import { wholeList } from "../whole-list";

const REFRESH_MS = 30_000;
/** More points than a chart has pixels to spare only cost. */
const HISTORY_POINTS = 300;

const nodeKeys = {
  all: ["nodes"] as const,
  list: (q: string) => ["nodes", "list", q] as const,
  selected: (query: NodeListQuery) => ["nodes", "selected", query] as const,
  detail: (id: string) => ["nodes", "detail", id] as const,
  history: (id: string) => ["nodes", "history", id] as const,
  report: (id: string) => ["nodes", "report", id] as const,
  runs: (id: string) => ["nodes", "runs", id] as const,
  processes: (id: string) => ["nodes", "processes", id] as const,
  trials: (id: string) => ["nodes", "trials", id] as const,
  scenario: (id: string) => ["nodes", "scenario", id] as const,
};

/** Nodes whose name matches `q`, a page at a time. */
export function nodesQuery(q: string) {
  return infiniteQueryOptions({
    queryKey: nodeKeys.list(q),
    queryFn: ({ pageParam }) =>
      unwrap(
        client.GET("/api/v1/nodes", {
          params: { query: { limit: 100, ...(q ? { q } : {}), ...(pageParam ? { cursor: pageParam } : {}) } },
        }),
      ),
    initialPageParam: "",
    getNextPageParam: (page) => page.next_cursor,
    placeholderData: keepPreviousData,
    refetchInterval: REFRESH_MS,
  });
}

/** What the server selects and sorts by. */
type NodeListQuery = Omit<NodesSearch, "down" | "view" | "columns"> & { descending?: boolean };

export function nodeListQuery({
  down,
  view: _view,
  columns: _columns,
  ...selection
}: NodesSearch): NodeListQuery {
  return { ...selection, ...(down ? { descending: true } : {}) };
}

const MOST_PER_PAGE = 500;
/** More pages than these are not asked for again by a clock: each would be a query of its own. */
const REFRESHED_PAGES = 2;

/** The selected nodes in the wished order, a page at a time, as far as the reader scrolls. */
export function selectedNodesQuery(query: NodeListQuery) {
  return infiniteQueryOptions({
    queryKey: nodeKeys.selected(query),
    queryFn: ({ pageParam }) =>
      unwrap(
        client.GET("/api/v1/nodes", {
          params: {
            query: { ...query, limit: MOST_PER_PAGE, ...(pageParam ? { cursor: pageParam } : {}) },
          },
        }),
      ),
    initialPageParam: "",
    getNextPageParam: (page) => page.next_cursor,
    placeholderData: keepPreviousData,
    refetchInterval: ({ state }) => ((state.data?.pages.length ?? 0) <= REFRESHED_PAGES ? REFRESH_MS : false),
  });
}

/** A path of the API with what a list is selected by, for a download. */
export function csvPath(path: string, query: Record<string, unknown>): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query))
    for (const one of Array.isArray(value) ? value : [value])
      if (one !== undefined) parameters.append(name, String(one));
  const text = parameters.toString();
  return text ? `${path}?${text}` : path;
}

export function nodeQuery(id: string) {
  return queryOptions({
    queryKey: nodeKeys.detail(id),
    queryFn: () => unwrap(client.GET("/api/v1/nodes/{node_id}", { params: { path: { node_id: id } } })),
    refetchInterval: REFRESH_MS,
  });
}

/** The memory of a node over the last days, as samples or as roll-ups of them. */
export function nodeHistoryQuery(id: string, days: number) {
  return queryOptions({
    queryKey: [...nodeKeys.history(id), days] as const,
    queryFn: () =>
      unwrap(
        client.GET("/api/v1/nodes/{node_id}/history", {
          params: {
            path: { node_id: id },
            query: { from: new Date(Date.now() - days * 86_400_000).toISOString(), points: HISTORY_POINTS },
          },
        }),
      ),
    placeholderData: keepPreviousData,
    refetchInterval: REFRESH_MS,
  });
}

/** The newest report as its agent sent it. */
export function nodeReportQuery(id: string) {
  return queryOptions({
    queryKey: nodeKeys.report(id),
    queryFn: () =>
      unwrap(client.GET("/api/v1/nodes/{node_id}/report", { params: { path: { node_id: id } } })),
  });
}

export function nodeRunsQuery(id: string) {
  return queryOptions({
    queryKey: nodeKeys.runs(id),
    queryFn: () =>
      wholeList((cursor) =>
        unwrap(
          client.GET("/api/v1/nodes/{node_id}/runs", {
            params: { path: { node_id: id }, query: { limit: 200, ...cursor } },
          }),
        ),
      ),
  });
}

/** What was measured on a node by `hugeplan trial`, newest first. */
export function nodeTrialsQuery(id: string) {
  return queryOptions({
    queryKey: nodeKeys.trials(id),
    queryFn: () =>
      wholeList((cursor) =>
        unwrap(
          client.GET("/api/v1/nodes/{node_id}/trials", {
            params: { path: { node_id: id }, query: { limit: 200, ...cursor } },
          }),
        ),
      ),
  });
}

export function nodeProcessesQuery(id: string) {
  return queryOptions({
    queryKey: nodeKeys.processes(id),
    queryFn: () =>
      unwrap(client.GET("/api/v1/nodes/{node_id}/processes", { params: { path: { node_id: id } } })),
  });
}

/** The databases of a node as they run today, as a scenario to start from. */
export function nodeScenarioQuery(id: string) {
  return queryOptions({
    queryKey: nodeKeys.scenario(id),
    queryFn: () =>
      unwrap(client.GET("/api/v1/nodes/{node_id}/scenario", { params: { path: { node_id: id } } })),
    // When the node is left, it tells what somebody typed from what came with the node.
    gcTime: Number.POSITIVE_INFINITY,
  });
}

/** Removes a node with all that is stored of it. One that is gone already is removed too. */
export function useRemoveNode() {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: async (id: string) => {
      const answer = await client.DELETE("/api/v1/nodes/{node_id}", { params: { path: { node_id: id } } });
      if (answer.response.status !== 404) await unwrap(Promise.resolve(answer));
    },
    onSuccess: () =>
      Promise.all([
        queries.invalidateQueries({ queryKey: nodeKeys.all, refetchType: "none" }),
        queries.invalidateQueries({ queryKey: ["fleet"] }),
      ]),
  });
}
