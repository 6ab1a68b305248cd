// What need not wait for the page's scripts. A file of its own, because the page's policy allows no inline script.

// The colour scheme, before the first paint.
(() => {
  let stored = null;
  try {
    stored = window.localStorage.getItem("mantine-color-scheme-value");
  } catch {
    // Storage may be forbidden; the system's preference is then used.
  }
  const dark =
    stored === "dark" || (stored !== "light" && window.matchMedia("(prefers-color-scheme: dark)").matches);
  document.documentElement.setAttribute("data-mantine-color-scheme", dark ? "dark" : "light");
})();

// The answers that the page asks for first travel while its scripts do. `src/api/early.ts` hands them over.
(() => {
  const { pathname } = window.location;
  if (pathname === "/login") return;
  const wanted = ["/api/v1/session"];
  if (pathname === "/") wanted.push("/api/v1/fleet/summary");
  window.hugeplanEarly = new Map(
    wanted.map((path) => {
      const answer = fetch(path);
      // Whoever takes the answer hears of its failure; nobody may take it.
      answer.catch(() => undefined);
      return [path, answer];
    }),
  );
})();
