const KEY = "hugeplan.after-login";

/**
 * Where to go after a login that leaves this page for another site, which would lose the address with its fragment. It
 * stays in this tab: a fragment holds a draft with names, which no server is to see.
 */
export function rememberForLogin(href: string): void {
  sessionStorage.setItem(KEY, href);
}

/** What was remembered, once; null where nothing was. */
export function takeRemembered(): string | null {
  const href = sessionStorage.getItem(KEY);
  sessionStorage.removeItem(KEY);
  return href;
}
