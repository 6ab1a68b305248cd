import { queryOptions, useMutation, useQueryClient } from "@tanstack/react-query";
import { client, unwrap } from "../client";
import type { TokenCreate } from "../types";
import { wholeList } from "../whole-list";

const tokenKeys = { list: ["tokens"] as const };

export function tokensQuery() {
  return queryOptions({
    queryKey: tokenKeys.list,
    queryFn: () =>
      wholeList((cursor) =>
        unwrap(client.GET("/api/v1/tokens", { params: { query: { limit: 200, ...cursor } } })),
      ),
  });
}

export function useCreateToken() {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (body: TokenCreate) => unwrap(client.POST("/api/v1/tokens", { body })),
    onSuccess: () => queries.invalidateQueries({ queryKey: tokenKeys.list }),
  });
}

export function useRevokeToken() {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (id: string) =>
      unwrap(client.DELETE("/api/v1/tokens/{token_id}", { params: { path: { token_id: id } } })),
    onSuccess: () => queries.invalidateQueries({ queryKey: tokenKeys.list }),
  });
}
