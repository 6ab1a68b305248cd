import createClient, { type Middleware } from "openapi-fetch";
import { fetchOrEarly } from "./early";
import { networkError, toApiError } from "./problem";
import type { paths } from "./schema";

const SAFE_METHODS = new Set(["GET", "HEAD", "OPTIONS"]);

let csrfToken: string | null = null;

/** The session's CSRF token; kept in memory only and sent with every unsafe request. */
export function setCsrfToken(value: string | null): void {
  csrfToken = value;
}

const csrf: Middleware = {
  onRequest({ request }) {
    if (csrfToken && !SAFE_METHODS.has(request.method)) request.headers.set("X-CSRF-Token", csrfToken);
    return request;
  },
  onError() {
    return networkError();
  },
};

/** The one client of the API. `fetch` is looked up at each call, so that tests can replace it. */
export const client = createClient<paths>({
  // Where there is no page, as in a test of logic, there is no address to begin with.
  baseUrl: globalThis.location?.origin ?? "",
  fetch: fetchOrEarly,
});
client.use(csrf);

interface FetchResult<T> {
  data?: T;
  error?: unknown;
  response: Response;
}

/** The body of an answer, or an ApiError thrown. */
export async function unwrap<T>(result: Promise<FetchResult<T>>): Promise<T> {
  const { data, error, response } = await result;
  if (!response.ok) throw toApiError(response, error);
  return data as T;
}
