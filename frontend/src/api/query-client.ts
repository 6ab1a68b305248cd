import { MutationCache, QueryCache, QueryClient } from "@tanstack/react-query";
import { ApiError } from "./problem";
import { sessionKeys } from "./session";

const MAX_RETRIES = 2;

/** Only what may pass by itself is tried again: no answer, or a server error. */
function shouldRetry(failures: number, error: unknown): boolean {
  if (!(error instanceof ApiError)) return false;
  return failures < MAX_RETRIES && (error.status === 0 || error.status >= 502);
}

/** The query client. `onSignedOut` is called when a session ends while the dashboard is open. */
export function createQueryClient(onSignedOut: () => void): QueryClient {
  const check = (error: unknown, isSession = false) => {
    if (error instanceof ApiError && error.isUnauthorized && !isSession) {
      client.removeQueries({ queryKey: sessionKeys.current });
      onSignedOut();
    }
  };
  const client = new QueryClient({
    queryCache: new QueryCache({
      onError: (error, query) => check(error, query.queryKey[0] === sessionKeys.current[0]),
    }),
    mutationCache: new MutationCache({
      onError: (error, _variables, _context, mutation) =>
        check(error, mutation.options.mutationKey?.[0] === "login"),
    }),
    defaultOptions: {
      // The server is often on this machine or in its own network: being offline says nothing about it.
      queries: {
        retry: shouldRetry,
        retryDelay: 400,
        staleTime: 5_000,
        refetchOnWindowFocus: false,
        networkMode: "always",
      },
      mutations: { retry: false, networkMode: "always" },
    },
  });
  return client;
}
