/**
 * Takes the token out of `#token=...` and out of the address and its history entry, so that it is neither copied with
 * the address nor kept by the browser. Returns null when there is none.
 */
export function takeTokenFromHash(page: Pick<Window, "location" | "history">): string | null {
  const token = new URLSearchParams(page.location.hash.replace(/^#/, "")).get("token");
  if (token === null) return null;
  page.history.replaceState(page.history.state, "", page.location.pathname + page.location.search);
  return token || null;
}
