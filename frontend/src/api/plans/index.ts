import { queryOptions } from "@tanstack/react-query";
import { client, unwrap } from "../client";
import type { PlanPreview, SavedPlan, ScenarioDocument } from "../types";

export interface PreviewInput {
  nodeId: string | null;
  /** Built from what stands in the form; it may be invalid, and then the server names the field. */
  scenario: Record<string, unknown>;
}

/** The document as the API types it. The form sends wrong input too, on purpose: the server is the one judge. */
export function asScenarioDocument(scenario: Record<string, unknown>): ScenarioDocument {
  return scenario as unknown as ScenarioDocument;
}

/** What an answer holds beside the plan. Files of a plan that does not fit come only "all the same", with a warning. */
type Files = "no files" | "files" | "files all the same";

export const planKeys = {
  preview: (input: PreviewInput | null, files: Files) => ["plans", "preview", input, files] as const,
  saved: (id: string) => ["plans", "saved", id] as const,
};

function previewQuery(input: PreviewInput | null, files: Files) {
  return queryOptions({
    queryKey: planKeys.preview(input, files),
    // openapi-fetch widens the tuples of the schema to arrays; the document is the one of the schema all the same.
    queryFn: ({ signal }): Promise<PlanPreview> =>
      unwrap<unknown>(
        client.POST("/api/v1/plans/preview", {
          body: {
            node_id: input?.nodeId ?? null,
            scenario: asScenarioDocument(input?.scenario ?? {}),
            files: files !== "no files",
            force: files === "files all the same",
          },
          signal,
        }),
      ) as Promise<PlanPreview>,
    enabled: input !== null,
    // The last plan stays in sight while the next is computed, but only for the node it was computed for.
    placeholderData: (previous, query) =>
      query?.queryKey[2]?.nodeId === input?.nodeId ? previous : undefined,
    retry: false,
    staleTime: 60_000,
  });
}

/** The plan of a scenario that is not saved, without its files. A POST that changes nothing, so it is cached like a read. */
export function planPreviewQuery(input: PreviewInput | null) {
  return previewQuery(input, "no files");
}

/** The same plan with the files that apply it: they are rendered once the inputs have come to rest. */
export function planFilesQuery(input: PreviewInput, { fits }: { fits: boolean }) {
  return previewQuery(input, fits ? "files" : "files all the same");
}

/** A plan that was saved, such as the one in force on a node. */
export function savedPlanQuery(id: string) {
  return queryOptions({
    queryKey: planKeys.saved(id),
    queryFn: (): Promise<SavedPlan> =>
      unwrap<unknown>(
        client.GET("/api/v1/plans/{plan_id}", { params: { path: { plan_id: id } } }),
      ) as Promise<SavedPlan>,
    staleTime: Number.POSITIVE_INFINITY,
  });
}
