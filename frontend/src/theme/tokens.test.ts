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
  // As in global.css: the darkest stripe of each hatching, behind the text that stands on it.
  it.each([
    ["text", "border-strong", 0.28, "state-unknown-soft"],
    ["text", "border", 0.4, "surface"],
    ["text-dim", "border", 0.4, "surface"],
  ] as [TokenName, TokenName, number, TokenName][])(
    "%s is readable on stripes of %s",
    (ink, stripe, share, ground) => {
      expect(contrast(value(ink), mixed(value(stripe), value(ground), share))).toBeGreaterThanOrEqual(4.5);
    },
  );
  it("neighbours in the ledger differ in lightness", () => {
    const steps = LEDGER.slice(1).map((name, index) =>
      contrast(value(name), value(LEDGER[index] as TokenName)),
    );
    expect(Math.min(...steps)).toBeGreaterThanOrEqual(1.4);
  });
});
