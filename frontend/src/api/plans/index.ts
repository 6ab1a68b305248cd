import { keepPreviousData, queryOptions } from "@tanstack/react-query";
import { client, unwrap } from "../client";

export type ScenarioDocument = Record<string, unknown>;

export interface PreviewInput {
  nodeId: string | null;
  scenario: ScenarioDocument;
}

export const planKeys = {
  preview: (input: PreviewInput | null) => ["plans", "preview", input] as const,
};

/** The plan of a scenario that is not saved. A POST that changes nothing, so it is cached like a read. */
export function planPreviewQuery(input: PreviewInput | null) {
  return queryOptions({
    queryKey: planKeys.preview(input),
    queryFn: ({ signal }) =>
      unwrap(
        client.POST("/api/v1/plans/preview", {
          body: { node_id: input?.nodeId ?? null, scenario: input?.scenario ?? {} },
          signal,
        }),
      ),
    enabled: input !== null,
    placeholderData: keepPreviousData,
    retry: false,
    staleTime: 60_000,
  });
}
