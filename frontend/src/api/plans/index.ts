import { infiniteQueryOptions, queryOptions, useMutation, useQueryClient } from "@tanstack/react-query";
import { slimDump } from "@/lib/kubernetes-objects";
import { client, unwrap } from "../client";
import type { PlanPreview, PlanSummary, SavedPlan, ScenarioDocument } from "../types";

export interface PreviewInput {
  nodeId: string | null;
  /** Built from what stands in the form; it may be invalid, and then the server names the field. */
  scenario: Record<string, unknown>;
}

/** The document as the API types it. The form sends wrong input too, on purpose: the server is the one judge. */
export function asScenarioDocument(scenario: Record<string, unknown>): ScenarioDocument {
  return scenario as unknown as ScenarioDocument;
}

const planKeys = {
  preview: (input: PreviewInput | null) => ["plans", "preview", input] as const,
  saved: (id: string) => ["plans", "saved", id] as const,
  list: ["plans", "list"] as const,
};

/** The plan of a scenario that is not saved. It has no files: those are of a plan that is kept. */
export function fetchPreview({ nodeId, scenario }: PreviewInput, signal: AbortSignal): Promise<PlanPreview> {
  // openapi-fetch widens the tuples of the schema to arrays; the document is the one of the schema all the same.
  return unwrap<unknown>(
    client.POST("/api/v1/plans/preview", {
      body: { node_id: nodeId, scenario: asScenarioDocument(scenario), files: false, force: false },
      signal,
    }),
  ) as Promise<PlanPreview>;
}

/** The same as a query, for plans that are compared: a POST that changes nothing is cached like a read. */
export function planPreviewQuery(input: PreviewInput | null) {
  return queryOptions({
    queryKey: planKeys.preview(input),
    queryFn: ({ signal }) => fetchPreview(input ?? { nodeId: null, scenario: {} }, signal),
    enabled: input !== null,
    retry: false,
    staleTime: 60_000,
  });
}

/** A kept plan: what it is never changes, what was decided about it does. */
export function savedPlanQuery(id: string) {
  return queryOptions({
    queryKey: planKeys.saved(id),
    queryFn: (): Promise<SavedPlan> =>
      unwrap<unknown>(
        client.GET("/api/v1/plans/{plan_id}", { params: { path: { plan_id: id } } }),
      ) as Promise<SavedPlan>,
  });
}

/** What a kept plan was computed from. */
export function planInputsQuery(id: string) {
  return queryOptions({
    queryKey: [...planKeys.saved(id), "inputs"],
    queryFn: () =>
      unwrap(client.GET("/api/v1/plans/{plan_id}/inputs", { params: { path: { plan_id: id } } })),
    // It never changes.
    staleTime: Number.POSITIVE_INFINITY,
  });
}

export interface PlanSelection {
  nodeId?: string;
  fleetPlanId?: string;
  state?: PlanSummary["state"];
}

/** Kept plans, the newest first. */
export function plansQuery({ nodeId, fleetPlanId, state }: PlanSelection = {}) {
  return infiniteQueryOptions({
    queryKey: ["plans", "list", nodeId ?? null, fleetPlanId ?? null, state ?? null] as const,
    queryFn: ({ pageParam, signal }) =>
      unwrap(
        client.GET("/api/v1/plans", {
          params: {
            query: { node_id: nodeId, fleet_plan_id: fleetPlanId, state, limit: 50, cursor: pageParam },
          },
          signal,
        }),
      ),
    initialPageParam: null as string | null,
    getNextPageParam: (last) => last.next_cursor,
  });
}

/** Computes the plan once more, with the newest sample, and freezes it: that is what is looked at and signed. */
export function useKeepPlan() {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: ({ nodeId, scenario }: PreviewInput) =>
      unwrap<unknown>(
        client.POST("/api/v1/plans", {
          body: { node_id: nodeId, scenario: asScenarioDocument(scenario) },
        }),
      ) as Promise<SavedPlan>,
    onSuccess: (kept) => {
      queries.setQueryData(planKeys.saved(kept.id), kept);
      return queries.invalidateQueries({ queryKey: planKeys.list });
    },
  });
}

export type PlanStep =
  | "propose"
  | "approve"
  | "approve-unknown-fit"
  | "withdraw"
  | "in-force"
  | "end-in-force";

function send(step: PlanStep, id: string, version: number) {
  const params = { params: { path: { plan_id: id }, header: { "if-match": `"${version}"` } } };
  switch (step) {
    case "propose":
      return client.POST("/api/v1/plans/{plan_id}/propose", params);
    case "approve":
      return client.POST("/api/v1/plans/{plan_id}/approve", params);
    case "approve-unknown-fit":
      return client.POST("/api/v1/plans/{plan_id}/approve", {
        params: { ...params.params, query: { accept_unknown_fit: true } },
      });
    case "withdraw":
      return client.POST("/api/v1/plans/{plan_id}/withdraw", params);
    case "in-force":
      return client.POST("/api/v1/plans/{plan_id}/in-force", params);
    case "end-in-force":
      return client.DELETE("/api/v1/plans/{plan_id}/in-force", params);
  }
}

/** One decision about a kept plan, of the state that the reader has seen. */
export function usePlanStep(plan: Pick<PlanSummary, "id" | "version">) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (step: PlanStep) => unwrap(send(step, plan.id, plan.version)),
    onSuccess: (summary) =>
      queries.setQueryData(planKeys.saved(plan.id), (old?: SavedPlan) => old && { ...old, ...summary }),
    // Also after a refusal: somebody else may have decided meanwhile.
    onSettled: () =>
      Promise.all([
        queries.invalidateQueries({ queryKey: ["plans", "saved"] }),
        queries.invalidateQueries({ queryKey: planKeys.list }),
        queries.invalidateQueries({ queryKey: ["nodes"] }),
      ]),
  });
}

export function useDeletePlan() {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: ({ id, version }: Pick<PlanSummary, "id" | "version">) =>
      unwrap(
        client.DELETE("/api/v1/plans/{plan_id}", {
          params: { path: { plan_id: id }, header: { "if-match": `"${version}"` } },
        }),
      ),
    onSuccess: () => queries.invalidateQueries({ queryKey: planKeys.list }),
  });
}

/** Reads what `kubectl get pods -A -o json` prints as the workloads of a node, by the rules of the import. */
export function useReadPods() {
  return useMutation({
    mutationFn: ({ text, nodeName }: { text: string; nodeName?: string | undefined }) =>
      unwrap(
        client.POST("/api/v1/imports/kubernetes/workloads", {
          params: { query: { node_name: nodeName } },
          body: slimDump(text) as unknown as Record<string, never>,
          // It is JSON already, and the service says what is wrong with it.
          bodySerializer: (body) => body as unknown as string,
        }),
      ),
  });
}
