import { queryOptions } from "@tanstack/react-query";
import { client, unwrap } from "../client";

export const evidenceKeys = {
  published: ["evidence", "published"] as const,
  backtest: ["evidence", "backtest"] as const,
};

export function evidenceQuery() {
  return queryOptions({
    queryKey: evidenceKeys.published,
    queryFn: () => unwrap(client.GET("/api/v1/evidence")),
    staleTime: Number.POSITIVE_INFINITY,
  });
}

export function backtestQuery() {
  return queryOptions({
    queryKey: evidenceKeys.backtest,
    queryFn: () => unwrap(client.GET("/api/v1/evidence/backtest")),
    staleTime: Number.POSITIVE_INFINITY,
  });
}
