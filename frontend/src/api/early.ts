declare global {
  interface Window {
    /** Answers under way since before the scripts were there, by path and query. `public/start.js` asks for them. */
    hugeplanEarly?: Map<string, Promise<Response>>;
  }
}

/**
 * Sends a request, or hands over its answer where `public/start.js` has already asked. An answer is handed over once;
 * after a refusal (nobody is signed in) the others are worth nothing, as they were asked by nobody too.
 */
export async function fetchOrEarly(request: Request): Promise<Response> {
  const early = globalThis.window?.hugeplanEarly;
  const { pathname, search } = new URL(request.url);
  const answer = request.method === "GET" ? early?.get(pathname + search) : undefined;
  if (!early || !answer) return globalThis.fetch(request);
  early.delete(pathname + search);
  const response = await answer;
  if (!response.ok) early.clear();
  return response;
}
