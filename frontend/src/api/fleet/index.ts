import { keepPreviousData, queryOptions, useMutation, useQueryClient } from "@tanstack/react-query";
import { useEffect } from "react";
import type { NodeSelection } from "@/search";
import { client, unwrap } from "../client";
import { ApiError } from "../problem";
import type {
  FleetPlanJob,
  FleetPlanRequest,
  FleetRowsDecided,
  FleetRowsDecision,
  SavedPlan,
} from "../types";
import { wholeList } from "../whole-list";

const REFRESH_MS = 30_000;
const DAY_MS = 86_400_000;

export const fleetKeys = {
  all: ["fleet"] as const,
  plans: ["fleet", "plans"] as const,
  plan: (id: string) => ["fleet", "plans", id] as const,
};

/** The selected nodes in figures, however many there are. */
export function fleetSummaryQuery(selection: NodeSelection = {}) {
  return queryOptions({
    queryKey: ["fleet", "summary", selection] as const,
    queryFn: () => unwrap(client.GET("/api/v1/fleet/summary", { params: { query: selection } })),
    placeholderData: keepPreviousData,
    refetchInterval: REFRESH_MS,
  });
}

/** What changed within a day, newest first. */
export function recentEventsQuery({ synthetic }: Pick<NodeSelection, "synthetic"> = {}) {
  return queryOptions({
    queryKey: ["fleet", "events", synthetic] as const,
    queryFn: () => {
      const since = new Date(Date.now() - DAY_MS).toISOString();
      const query = { since, limit: 100, synthetic };
      return unwrap(client.GET("/api/v1/events/history", { params: { query } }));
    },
    refetchInterval: REFRESH_MS,
  });
}

/** The fleet plans, newest first. */
export function fleetPlansQuery() {
  return queryOptions({
    queryKey: fleetKeys.plans,
    queryFn: () =>
      wholeList((cursor) =>
        unwrap(client.GET("/api/v1/fleet/plans", { params: { query: { limit: 200, ...cursor } } })),
      ),
    refetchInterval: REFRESH_MS,
  });
}

const ENDED = new Set(["done", "failed", "cancelled"]);

export function hasEnded(status: string): boolean {
  return ENDED.has(status);
}

/** A fleet plan. While it runs, `useFleetPlanProgress` brings what is new of it; asking again is for lost streams. */
export function fleetPlanQuery(id: string) {
  return queryOptions({
    queryKey: fleetKeys.plan(id),
    queryFn: () => unwrap(client.GET("/api/v1/fleet/plans/{job_id}", { params: { path: { job_id: id } } })),
    refetchInterval: ({ state }) => (state.data && hasEnded(state.data.status) ? false : REFRESH_MS),
  });
}

/**
 * Follows a fleet plan as the server gets on with it. The browser opens a stream that was lost again by itself; each one
 * begins with how the plan stands.
 */
export function useFleetPlanProgress(id: string, isUnderWay: boolean): void {
  const queries = useQueryClient();
  useEffect(() => {
    if (!isUnderWay) return;
    const stream = new EventSource(`/api/v1/fleet/plans/${encodeURIComponent(id)}/progress`);
    stream.addEventListener("progress", ({ data }) => {
      const job = JSON.parse(data) as FleetPlanJob;
      queries.setQueryData(fleetPlanQuery(id).queryKey, (old) => old && { ...old, ...job });
    });
    stream.addEventListener("end", () => {
      stream.close();
      // With its results, and the list with its new state.
      void queries.invalidateQueries({ queryKey: fleetKeys.plans });
    });
    return () => stream.close();
  }, [id, isUnderWay, queries]);
}

export function useStartFleetPlan() {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (body: FleetPlanRequest) => unwrap(client.POST("/api/v1/fleet/plan", { body })),
    onSuccess: () => queries.invalidateQueries({ queryKey: fleetKeys.plans }),
  });
}

export function useCancelFleetPlan(id: string) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: () =>
      unwrap(client.POST("/api/v1/fleet/plans/{job_id}/cancel", { params: { path: { job_id: id } } })),
    onSuccess: () => queries.invalidateQueries({ queryKey: fleetKeys.plans }),
  });
}

/** The plan of exactly this row; it is kept when it is asked for the first time. */
export function useOpenRow(jobId: string) {
  return useMutation({
    mutationFn: (nodeId: string) =>
      unwrap<unknown>(
        client.POST("/api/v1/fleet/plans/{job_id}/nodes/{node_id}/plan", {
          params: { path: { job_id: jobId, node_id: nodeId } },
        }),
      ) as Promise<SavedPlan>,
  });
}

const LIMIT_PAUSE_MS = 2000;
const LIMIT_PAUSES = 60;

/** Ask again while the service says that too much was changed within a minute: a large fleet has many parts. */
async function withinLimit<T>(ask: () => Promise<T>): Promise<T> {
  for (let pauses = 0; ; pauses++) {
    try {
      return await ask();
    } catch (error) {
      if (!(error instanceof ApiError) || error.status !== 429 || pauses >= LIMIT_PAUSES) throw error;
      await new Promise((resolve) => setTimeout(resolve, LIMIT_PAUSE_MS));
    }
  }
}

/** One decision about all rows or a group's, a part of them per request. `onPart` hears how far it is. */
export function useDecideRows(
  jobId: string,
  group: number | undefined,
  onPart: (done: FleetRowsDecided) => void,
) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: async (to: FleetRowsDecision["to"]) => {
      const sum: FleetRowsDecided = { done: 0, already: 0, skipped: [], next: null };
      do {
        const part = await withinLimit(() =>
          unwrap(
            client.POST("/api/v1/fleet/plans/{job_id}/decisions", {
              params: { path: { job_id: jobId } },
              body: { to, after: sum.next, group_number: group ?? null, accept_unknown_fit: false },
            }),
          ),
        );
        sum.done += part.done;
        sum.already += part.already;
        sum.skipped.push(...part.skipped);
        sum.next = part.next;
        onPart({ ...sum });
      } while (sum.next !== null);
      return sum;
    },
    onSettled: () => queries.invalidateQueries({ queryKey: ["plans"] }),
  });
}

/** How often each page size is best over the measured nodes, or over some runs. */
export function pageSizeWinsQuery(selection: NodeSelection = {}, run: readonly string[] = []) {
  return queryOptions({
    queryKey: ["fleet", "wins", selection, ...run] as const,
    queryFn: () =>
      unwrap(
        client.GET("/api/v1/fleet/page-size-wins", { params: { query: { ...selection, run: [...run] } } }),
      ),
  });
}
