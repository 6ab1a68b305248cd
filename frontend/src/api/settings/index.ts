import {
  infiniteQueryOptions,
  keepPreviousData,
  queryOptions,
  useMutation,
  useQueryClient,
} from "@tanstack/react-query";
import { client, unwrap } from "../client";

const sessionsKey = ["settings", "sessions"] as const;
const AUDIT_PAGE = 50;

/** Browsers that are signed in: everybody's for an administrator, one's own for others. */
export function sessionsQuery() {
  return queryOptions({
    queryKey: sessionsKey,
    queryFn: () => unwrap(client.GET("/api/v1/sessions", { params: { query: { limit: 200 } } })),
  });
}

export function useEndSession() {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (id: string) =>
      unwrap(client.DELETE("/api/v1/sessions/{session_id}", { params: { path: { session_id: id } } })),
    onSuccess: () => queries.invalidateQueries({ queryKey: sessionsKey }),
  });
}

export interface AuditFilter {
  actor?: string;
  action?: string;
  subject?: string;
}

/** Who changed what, newest first, a page at a time. */
export function auditQuery(filter: AuditFilter) {
  return infiniteQueryOptions({
    queryKey: ["settings", "audit", filter] as const,
    queryFn: ({ pageParam }) =>
      unwrap(
        client.GET("/api/v1/audit", {
          params: { query: { ...filter, limit: AUDIT_PAGE, ...(pageParam ? { cursor: pageParam } : {}) } },
        }),
      ),
    initialPageParam: "",
    getNextPageParam: (page) => page.next_cursor,
    placeholderData: keepPreviousData,
  });
}

/** Which service this is, and how long it keeps what. */
export function aboutQuery() {
  return queryOptions({
    queryKey: ["settings", "about"] as const,
    queryFn: () => unwrap(client.GET("/api/v1/about")),
    staleTime: Number.POSITIVE_INFINITY,
  });
}

/** How a browser may sign in beside a token. */
export function loginMethodsQuery() {
  return queryOptions({
    queryKey: ["settings", "login-methods"] as const,
    queryFn: () => unwrap(client.GET("/api/v1/login-methods")),
    staleTime: 60_000,
  });
}
