import { keepPreviousData, queryOptions } from "@tanstack/react-query";
import { client, unwrap } from "../client";

const evidenceKeys = {
  published: ["evidence", "published"] as const,
  backtest: ["evidence", "backtest"] as const,
  poolShape: ["evidence", "pool-shape"] as const,
  validation: ["evidence", "validation"] as const,
  trials: ["evidence", "trials"] as const,
  modelError: ["evidence", "model-error"] as const,
};

export function evidenceQuery() {
  return queryOptions({
    queryKey: evidenceKeys.published,
    queryFn: () => unwrap(client.GET("/api/v1/evidence")),
    staleTime: Number.POSITIVE_INFINITY,
  });
}

/** The published shape of throughput over buffer pool size, and one pool on it where its working set is known. */
export function poolShapeQuery(poolBytes: number, workingSetBytes: number | null) {
  const query = workingSetBytes === null ? {} : { pool_bytes: poolBytes, working_set_bytes: workingSetBytes };
  return queryOptions({
    queryKey: [...evidenceKeys.poolShape, query] as const,
    queryFn: () => unwrap(client.GET("/api/v1/evidence/pool-shape", { params: { query } })),
    staleTime: Number.POSITIVE_INFINITY,
    placeholderData: keepPreviousData,
  });
}

export function backtestQuery() {
  return queryOptions({
    queryKey: evidenceKeys.backtest,
    queryFn: () => unwrap(client.GET("/api/v1/evidence/backtest")),
    staleTime: Number.POSITIVE_INFINITY,
  });
}

/** How far the model errs, by class, with the measuring noise taken out. */
export function modelErrorsQuery() {
  return queryOptions({
    queryKey: evidenceKeys.modelError,
    queryFn: () => unwrap(client.GET("/api/v1/evidence/model-error")),
    staleTime: Number.POSITIVE_INFINITY,
  });
}

/** The newest trials of all nodes. */
export function fleetTrialsQuery() {
  return queryOptions({
    queryKey: evidenceKeys.trials,
    queryFn: () => unwrap(client.GET("/api/v1/trials", { params: { query: { limit: 50 } } })),
  });
}

/** What the project measured itself, beside what it had predicted. */
export function validationQuery() {
  return queryOptions({
    queryKey: evidenceKeys.validation,
    queryFn: () => unwrap(client.GET("/api/v1/evidence/validation")),
    staleTime: Number.POSITIVE_INFINITY,
  });
}
