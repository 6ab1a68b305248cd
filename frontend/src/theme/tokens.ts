/**
 * Every colour of the dashboard, light and dark side by side. Components use the CSS variables (`token("...")`),
 * never a literal, so that a scheme is changed here and nowhere else.
 *
 * Two families carry meaning. `page-*` is the hue of a page size, `ledger-*` the hue of a part of memory; ledger
 * neighbours differ in lightness so that the order can be read without colour. `state-*` is for states only.
 */
const TOKENS = {
  // Surfaces and ink
  body: ["#f6f7f9", "#10161d"],
  surface: ["#ffffff", "#18202a"],
  "surface-sunken": ["#f1f3f6", "#121922"],
  "surface-hover": ["#eef1f5", "#202a36"],
  border: ["#dde2e8", "#2c3845"],
  "border-strong": ["#828e9c", "#667485"],
  text: ["#17212c", "#e4e9ef"],
  "text-dim": ["#536070", "#a3afbd"],
  accent: ["#243242", "#dfe6ee"],
  "accent-hover": ["#354353", "#c5cfda"],
  "text-on-accent": ["#ffffff", "#10161d"],
  focus: ["#1d4ed8", "#93c5fd"],

  // Page sizes
  "page-4k": ["#5f6f84", "#94a3b8"],
  "page-thp": ["#0b8478", "#2dd4bf"],
  "page-2m": ["#2563eb", "#60a5fa"],
  "page-1g": ["#7c3aed", "#b49bfb"],
  "page-16g": ["#a21caf", "#e879f9"],

  // Ledger parts, in drawing order
  "ledger-kernel": ["#46413c", "#8d857c"],
  "ledger-system-reserved": ["#b3aaa0", "#57504a"],
  "ledger-kube-reserved": ["#7d736a", "#a89f95"],
  "ledger-eviction": ["#d6cec5", "#665e57"],
  "ledger-tenants": ["#b45309", "#f0a04b"],
  "ledger-engine-private": ["#f5c451", "#8a5a12"],
  "ledger-page-tables": ["#9f1239", "#fb7194"],
  "ledger-page-cache": ["#a9cf7f", "#4d7a2a"],
  "ledger-reclaimable": ["#d9e9c5", "#33511d"],
  "ledger-free": ["#ffffff", "#18202a"],
  "ledger-unknown": ["#e3e7ec", "#2a3541"],

  // States
  "state-ok": ["#15703c", "#4ade80"],
  "state-ok-soft": ["#e3f4e9", "#123222"],
  "state-attention": ["#94540a", "#fbbf24"],
  "state-attention-soft": ["#fdf1d8", "#3a2a0b"],
  "state-wrong": ["#b42318", "#fda29b"],
  "state-wrong-soft": ["#fdeaea", "#3f1816"],
  "state-unknown": ["#536070", "#a3afbd"],
  "state-unknown-soft": ["#eceff3", "#232d39"],

  // Charts
  grid: ["#e6eaef", "#25303c"],
  axis: ["#536070", "#a3afbd"],
  reference: ["#7a8695", "#7f8c9b"],
} as const satisfies Record<string, readonly [light: string, dark: string]>;

export type TokenName = keyof typeof TOKENS;

/** The CSS reference of a token: `token("text-dim")` is `var(--hp-text-dim)`. */
export function token(name: TokenName): string {
  return `var(--hp-${name})`;
}

/** The value of a token in one scheme; only for contrast tests. */
export function tokenValue(name: TokenName, scheme: "light" | "dark"): string {
  return TOKENS[name][scheme === "light" ? 0 : 1];
}

/** All tokens of one scheme as CSS custom properties. */
export function tokenVariables(scheme: "light" | "dark"): Record<string, string> {
  return Object.fromEntries(
    Object.entries(TOKENS).map(([name, [light, dark]]) => [
      `--hp-${name}`,
      scheme === "light" ? light : dark,
    ]),
  );
}
