import { queryOptions, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { client, setCsrfToken, unwrap } from "../client";
import type { Session } from "../types";

export const sessionKeys = { current: ["session"] as const };

async function remember(answer: Promise<Session>): Promise<Session> {
  const session = await answer;
  setCsrfToken(session.csrf_token);
  return session;
}

/** Who is asking; 401 when nobody is. */
export function sessionQuery() {
  return queryOptions({
    queryKey: sessionKeys.current,
    queryFn: () => remember(unwrap(client.GET("/api/v1/session"))),
    staleTime: 5 * 60_000,
    retry: false,
  });
}

/** Exchanges a token for a session cookie. */
export function useLogin() {
  const queries = useQueryClient();
  return useMutation({
    mutationKey: ["login"],
    mutationFn: (token: string) => remember(unwrap(client.POST("/api/v1/session", { body: { token } }))),
    onSuccess: (session) => {
      queries.clear();
      queries.setQueryData(sessionKeys.current, session);
    },
  });
}

export function useLogout() {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: () => unwrap(client.DELETE("/api/v1/session")),
    onSuccess: () => {
      setCsrfToken(null);
      queries.clear();
    },
  });
}

const MAY_PLAN = new Set(["planner", "approver", "admin"]);
const MAY_APPROVE = new Set(["approver", "admin"]);

/** Whether the reader may save scenarios and plans; a viewer may try them out. */
export function useMayPlan(): boolean {
  const { data } = useQuery(sessionQuery());
  return data !== undefined && MAY_PLAN.has(data.role);
}

/** Whether the reader may approve plans. */
export function useMayApprove(): boolean {
  const { data } = useQuery(sessionQuery());
  return data !== undefined && MAY_APPROVE.has(data.role);
}

/** Whether the reader may change what the service keeps: nodes, tokens. */
export function useIsAdmin(): boolean {
  return useQuery(sessionQuery()).data?.role === "admin";
}
