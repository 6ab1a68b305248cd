import { useMutation, useQueryClient } from "@tanstack/react-query";
import { client, unwrap } from "../client";
import type { LintReport } from "../types";

/** Kubernetes objects: the plan of each node, and with `save` a scenario of each node with a database. */
export function useImportKubernetes() {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: ({ objects, save }: { objects: Record<string, unknown>; save: boolean }) =>
      unwrap(
        client.POST("/api/v1/imports/kubernetes", {
          params: { query: { save } },
          body: objects as Record<string, never>,
        }),
      ),
    onSuccess: (_, { save }) =>
      save ? queries.invalidateQueries({ queryKey: ["scenarios"] }) : Promise.resolve(),
  });
}

/** What files about huge pages will really do, and what is wrong with them. */
export function useLint() {
  return useMutation({
    mutationFn: (files: { name: string; text: string }[]): Promise<LintReport> =>
      unwrap(client.POST("/api/v1/lint", { body: { files, arch: "x86_64" } })),
  });
}
