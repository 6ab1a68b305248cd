import { queryOptions } from "@tanstack/react-query";
import { client, unwrap } from "../client";

/** The engines the planner can size, with their settings. Changes only with a release. */
export function enginesQuery() {
  return queryOptions({
    queryKey: ["engines"] as const,
    queryFn: () => unwrap(client.GET("/api/v1/engines")),
    staleTime: Number.POSITIVE_INFINITY,
  });
}
