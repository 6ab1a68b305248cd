import type { UseQueryResult } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { ErrorState } from "./states";

interface QueryViewProps<T> {
  query: UseQueryResult<T>;
  skeleton: ReactNode;
  children: (data: T) => ReactNode;
}

/** One owner of loading and error, so that no view forgets a state. Data already shown stays while it refreshes. */
export function QueryView<T>({ query, skeleton, children }: QueryViewProps<T>) {
  if (query.data !== undefined) return <>{children(query.data)}</>;
  if (query.isError) return <ErrorState error={query.error} onRetry={() => void query.refetch()} />;
  return (
    <div aria-busy="true" role="status" aria-label="Loading">
      {skeleton}
    </div>
  );
}
