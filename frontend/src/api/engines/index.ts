import { queryOptions, useMutation } from "@tanstack/react-query";
import { client, unwrap } from "../client";

/** The engines the planner can size, with their settings. Changes only with a release. */
export function enginesQuery() {
  return queryOptions({
    queryKey: ["engines"] as const,
    queryFn: () => unwrap(client.GET("/api/v1/engines")),
    staleTime: Number.POSITIVE_INFINITY,
  });
}

/** What a server's own list of its settings says. */
export function useReadSettings() {
  return useMutation({
    mutationFn: (text: string) => unwrap(client.POST("/api/v1/engines/read-settings", { body: { text } })),
  });
}
