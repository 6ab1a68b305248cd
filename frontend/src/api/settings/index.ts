import {
  infiniteQueryOptions,
  keepPreviousData,
  queryOptions,
  useMutation,
  useQueryClient,
} from "@tanstack/react-query";
import { client, unwrap } from "../client";
import { wholeList } from "../whole-list";

const sessionsKey = ["settings", "sessions"] as const;
const AUDIT_PAGE = 50;

/** Browsers that are signed in: everybody's for an administrator, one's own for others. */
export function sessionsQuery() {
  return queryOptions({
    queryKey: sessionsKey,
    queryFn: () =>
      wholeList((cursor) =>
        unwrap(client.GET("/api/v1/sessions", { params: { query: { limit: 200, ...cursor } } })),
      ),
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

const enrolmentsKey = ["settings", "enrolments"] as const;

/** Machines that ask to enrol again and were not let in. */
export function enrolmentRequestsQuery() {
  return queryOptions({
    queryKey: enrolmentsKey,
    queryFn: () =>
      wholeList((cursor) =>
        unwrap(client.GET("/api/v1/enrolments/requests", { params: { query: { limit: 200, ...cursor } } })),
      ),
  });
}

export function useDecideEnrolment() {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: ({ id, decision }: { id: string; decision: "approved" | "refused" }) =>
      unwrap(
        client.POST("/api/v1/enrolments/requests/{request_id}/decision", {
          params: { path: { request_id: id } },
          body: { decision },
        }),
      ),
    onSuccess: () => queries.invalidateQueries({ queryKey: enrolmentsKey }),
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
