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

// Paper is white: what is printed from a dark page has the light page's colours.
(() => {
  const scheme = "data-mantine-color-scheme";
  const root = document.documentElement;
  let onScreen = null;
  window.addEventListener("beforeprint", () => {
    onScreen = root.getAttribute(scheme);
    root.setAttribute(scheme, "light");
  });
  window.addEventListener("afterprint", () => {
    if (onScreen !== null) root.setAttribute(scheme, onScreen);
    onScreen = null;
  });
})();

// The answers that the page asks for first travel while its scripts do. `src/api/early.ts` hands them over.
(() => {
  const { pathname } = window.location;
  if (pathname === "/login") return;
  const early = new Map();
  window.hugeplanEarly = early;
  const ask = (path) => {
    const answer = fetch(path);
    early.set(path, answer);
    return answer;
  };
  // Whoever takes an answer hears of its failure; it may be that nobody does.
  const ignore = () => undefined;
  ask("/api/v1/session").catch(ignore);
  if (pathname !== "/") return;
  ask("/api/v1/fleet/summary")
    .then(async (answer) => {
      if (!answer.ok) return;
      const { nodes, nodes_synthetic: synthetic } = await answer.clone().json();
      // Beside real machines, made-up ones are counted apart.
      if (synthetic > 0 && synthetic < nodes) await ask("/api/v1/fleet/summary?synthetic=false");
    })
    .catch(ignore);
})();
