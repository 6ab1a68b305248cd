import { keepPreviousData, queryOptions } from "@tanstack/react-query";
import { client, unwrap } from "../client";

const runKeys = {
  list: (q: string) => ["runs", "list", q] as const,
  detail: (id: string) => ["runs", "detail", id] as const,
  compare: (ids: readonly string[]) => ["runs", "compare", ...ids] as const,
};

/** A run with its curves. A run never changes once it is stored. */
export function runQuery(id: string) {
  return queryOptions({
    queryKey: runKeys.detail(id),
    queryFn: () => unwrap(client.GET("/api/v1/runs/{run_id}", { params: { path: { run_id: id } } })),
    staleTime: Number.POSITIVE_INFINITY,
  });
}

export function runComparisonQuery(ids: readonly string[]) {
  return queryOptions({
    queryKey: runKeys.compare(ids),
    queryFn: () => unwrap(client.GET("/api/v1/runs/compare", { params: { query: { run: [...ids] } } })),
    staleTime: Number.POSITIVE_INFINITY,
    enabled: ids.length >= 2,
  });
}

const MOST_OFFERED = 100;

/** The newest runs of nodes whose name holds `q`, out of the whole fleet. */
export function runsQuery(q: string) {
  return queryOptions({
    queryKey: runKeys.list(q),
    queryFn: async ({ signal }) => {
      let cursor = "";
      for (;;) {
        const query = { limit: MOST_OFFERED, ...(q ? { q } : {}), ...(cursor ? { cursor } : {}) };
        const page = await unwrap(client.GET("/api/v1/runs", { params: { query }, signal }));
        // A page looks through so many runs of other nodes, and may find none.
        if (page.items.length > 0 || !page.next_cursor) return page;
        cursor = page.next_cursor;
      }
    },
    placeholderData: keepPreviousData,
  });
}
