import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { type TokenName, tokenValue } from "./tokens";

/** WCAG 2 contrast of two #rrggbb colours. */
function contrast(a: string, b: string): number {
  const luminance = (hex: string) => {
    const [red = 0, green = 0, blue = 0] = [1, 3, 5].map((at) => {
      const channel = Number.parseInt(hex.slice(at, at + 2), 16) / 255;
      return channel <= 0.03928 ? channel / 12.92 : ((channel + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  const [low = 0, high = 0] = [luminance(a), luminance(b)].sort((x, y) => x - y);
  return (high + 0.05) / (low + 0.05);
}

/** `share` of one colour with the rest of another, as color-mix does in sRGB. */
function mixed(of: string, rest: string, share: number): string {
  const channel = (hex: string, at: number) => Number.parseInt(hex.slice(at, at + 2), 16);
  const parts = [1, 3, 5].map((at) => Math.round(share * channel(of, at) + (1 - share) * channel(rest, at)));
  return `#${parts.map((part) => part.toString(16).padStart(2, "0")).join("")}`;
}

interface Stripe {
  of: TokenName;
  share: number;
}

/** The darkest stripe of a hatching, as the style sheet has it: text stands on it. */
function stripe(rule: RegExp): Stripe {
  const [, of, percent] = rule.exec(readFileSync("src/theme/global.css", "utf8")) ?? [];
  if (!of || !percent) throw new Error(`global.css has no ${rule}`);
  return { of: of as TokenName, share: Number(percent) / 100 };
}
const MIX = /color-mix\(in srgb, var\(--hp-([\w-]+)\) (\d+)%/.source;
const STALE_STRIPE = stripe(new RegExp(`--hp-hatching:[^;]*${MIX}`));
const UNKNOWN_STRIPE = stripe(new RegExp(`\\.hp-hatched \\{[^}]*${MIX}`));

const LEDGER: TokenName[] = [
  "ledger-kernel",
  "ledger-system-reserved",
  "ledger-kube-reserved",
  "ledger-eviction",
  "ledger-tenants",
  "ledger-engine-private",
  "ledger-page-tables",
  "ledger-page-cache",
  "page-2m",
];

describe.each(["light", "dark"] as const)("%s", (scheme) => {
  const value = (name: TokenName) => tokenValue(name, scheme);
  it.each([
    ["text", "surface"],
    ["text", "body"],
    ["text-dim", "surface"],
    ["text-dim", "body"],
    ["text-dim", "surface-sunken"],
    ["text-on-accent", "accent"],
    ["text-on-accent", "accent-hover"],
    ["state-ok", "state-ok-soft"],
    ["state-attention", "state-attention-soft"],
    ["state-wrong", "state-wrong-soft"],
    ["state-wrong", "surface"],
  ] as [TokenName, TokenName][])("%s is readable on %s", (ink, ground) => {
    expect(contrast(value(ink), value(ground))).toBeGreaterThanOrEqual(4.5);
  });
  it.each(["page-4k", "page-thp", "page-2m", "page-1g", "page-16g", "border-strong"] as TokenName[])(
    "a line in %s stands out from the card",
    (name) => {
      expect(contrast(value(name), value("surface"))).toBeGreaterThanOrEqual(3);
    },
  );
  it.each([
    ["text", UNKNOWN_STRIPE, "state-unknown-soft"],
    ["text-dim", UNKNOWN_STRIPE, "state-unknown-soft"],
    ["text", STALE_STRIPE, "surface"],
    ["text-dim", STALE_STRIPE, "surface"],
  ] as [TokenName, Stripe, TokenName][])(
    "%s is readable on the stripes of %o",
    (ink, { of, share }, ground) => {
      expect(contrast(value(ink), mixed(value(of), value(ground), share))).toBeGreaterThanOrEqual(4.5);
    },
  );
  // A box of the TLB picture is a fifth of its page size's hue.
  it.each(["page-4k", "page-thp", "page-2m", "page-1g", "page-16g"] as TokenName[])(
    "a dim line is readable on a box in %s",
    (hue) => {
      expect(contrast(value("text-dim"), mixed(value(hue), value("surface"), 0.2))).toBeGreaterThanOrEqual(
        4.5,
      );
    },
  );
  it("neighbours in the ledger differ in lightness", () => {
    const steps = LEDGER.slice(1).map((name, index) =>
      contrast(value(name), value(LEDGER[index] as TokenName)),
    );
    expect(Math.min(...steps)).toBeGreaterThanOrEqual(1.4);
  });
});
