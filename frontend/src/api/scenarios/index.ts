import { queryOptions, useMutation, useQueryClient } from "@tanstack/react-query";
import { client, unwrap } from "../client";
import { asScenarioDocument, type PreviewInput } from "../plans";
import { wholeList } from "../whole-list";

const scenarioKeys = {
  all: ["scenarios"] as const,
  list: ["scenarios", "list"] as const,
  detail: (id: string) => ["scenarios", "detail", id] as const,
};

export function scenariosQuery() {
  return queryOptions({
    queryKey: scenarioKeys.list,
    queryFn: () =>
      wholeList((cursor) =>
        unwrap(client.GET("/api/v1/scenarios", { params: { query: { limit: 200, ...cursor } } })),
      ),
  });
}

/** Fetched afresh when opened: its version must be current to be edited. */
export function scenarioQuery(id: string) {
  return queryOptions({
    queryKey: scenarioKeys.detail(id),
    queryFn: () =>
      unwrap(client.GET("/api/v1/scenarios/{scenario_id}", { params: { path: { scenario_id: id } } })),
  });
}

interface SaveInput extends PreviewInput {
  name: string;
  /** The stored scenario and version to replace; absent for a new one. */
  replace?: { id: string; version: number };
}

export function useSaveScenario() {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: ({ name, nodeId, scenario, replace }: SaveInput) => {
      const body = { name, node_id: nodeId, scenario: asScenarioDocument(scenario) };
      if (!replace) return unwrap(client.POST("/api/v1/scenarios", { body }));
      return unwrap(
        client.PUT("/api/v1/scenarios/{scenario_id}", {
          params: { path: { scenario_id: replace.id }, header: { "if-match": `"${replace.version}"` } },
          body,
        }),
      );
    },
    onSuccess: () => queries.invalidateQueries({ queryKey: scenarioKeys.all }),
  });
}

export function useDeleteScenario() {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: ({ id, version }: { id: string; version: number }) =>
      unwrap(
        client.DELETE("/api/v1/scenarios/{scenario_id}", {
          params: { path: { scenario_id: id }, header: { "if-match": `"${version}"` } },
        }),
      ),
    // Only the list: the deleted one is still on the page for a moment and must not be asked for again.
    onSuccess: () => queries.invalidateQueries({ queryKey: scenarioKeys.list }),
  });
}
