import type { UseQueryResult } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { asApiError } from "@/api/problem";
import { ErrorState } from "./states";

interface QueryViewProps<T> {
  query: UseQueryResult<T>;
  skeleton: ReactNode;
  children: (data: T) => ReactNode;
}

/**
 * One owner of loading and error, so that no view forgets a state. Data already shown stays while it refreshes, and while
 * the server cannot answer; not when the server says that it is no more.
 */
export function QueryView<T>({ query, skeleton, children }: QueryViewProps<T>) {
  const isGone = query.isError && [404, 410].includes(asApiError(query.error).status);
  if (query.data !== undefined && !isGone) return <>{children(query.data)}</>;
  if (query.isError) return <ErrorState error={query.error} onRetry={() => void query.refetch()} />;
  return (
    <div aria-busy="true" role="status" aria-label="Loading">
      {skeleton}
    </div>
  );
}
