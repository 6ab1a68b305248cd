import { queryOptions } from "@tanstack/react-query";
import { client, unwrap } from "../client";

const REFRESH_MS = 30_000;

/** The whole fleet in figures, however many nodes it has; synthetic nodes are counted apart. */
export function fleetSummaryQuery() {
  return queryOptions({
    queryKey: ["fleet", "summary"] as const,
    queryFn: () => unwrap(client.GET("/api/v1/fleet/summary")),
    refetchInterval: REFRESH_MS,
  });
}
