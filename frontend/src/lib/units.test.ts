import { describe, expect, it } from "vitest";
import { formatPages } from "./page-size";
import { subjectWords } from "./subject-words";
import {
  formatAbsolute,
  formatBytes,
  formatBytesDelta,
  formatBytesExact,
  formatChance,
  formatDuration,
  formatNs,
  formatNsDelta,
  formatNsInterval,
  formatNsWithin,
  formatPercentChange,
  formatRelative,
  formatScore,
  formatShare,
  formatThroughput,
} from "./units";
import golden from "./units.golden.json";

const plain = (text: string) => text.replaceAll("\u00a0", " ");
type Vector = [number | null, string];

describe("golden vectors", () => {
  const formatters = {
    bytes: formatBytes,
    ns: formatNs,
    percent_change: formatPercentChange,
    share: formatShare,
    chance: formatChance,
    duration: formatDuration,
  } as const;
  for (const [name, format] of Object.entries(formatters)) {
    const vectors = golden[name as keyof typeof formatters] as Vector[];
    it.each(vectors)(`${name} of %s is %s`, (value, text) => {
      expect(plain(format(value))).toBe(text);
    });
  }
  it.each(golden.subjects)("the subject %s is %s", (subject, text) => {
    expect(subjectWords(subject ?? "")).toBe(text);
  });
  it.each(golden.pages as [number | null, number, string][])(
    "pages of %s and %s are %s",
    (pages, size, text) => {
      expect(plain(formatPages(pages, size))).toBe(text);
    },
  );
});

describe("the precision an interval deserves", () => {
  it.each(golden.ns_interval as [number, number, string][])("%s to %s is %s", (low, high, text) => {
    expect(plain(formatNsInterval({ low, high }))).toBe(text);
  });
  it("rounds a value as its interval does, and never to a zero that it is not", () => {
    expect(plain(formatNsWithin(14.26, { low: 5.1, high: 28.4 }))).toBe("14 ns");
    expect(plain(formatNsWithin(738.7, { low: 0, high: 1265 }))).toBe("700 ns");
    expect(plain(formatNsWithin(0.3, { low: 0, high: 28 }))).toBe("0.3 ns");
    expect(plain(formatNsWithin(0, { low: 0, high: 28 }))).toBe("0 ns");
    expect(formatNsWithin(null, { low: 0, high: 1 })).toBe("unknown");
  });
});

describe("signs and exactness", () => {
  it("shows the sign of a difference on both sides of zero", () => {
    expect(plain(formatBytesDelta(12582912))).toBe("+12 MiB");
    expect(plain(formatBytesDelta(-12582912))).toBe("−12 MiB");
    expect(plain(formatNsDelta(3.14))).toBe("+3.1 ns");
    expect(plain(formatNsDelta(-0.01))).toBe("0.0 ns");
  });
  it("writes a throughput of any unit without an exponent", () => {
    expect([134037.09, 3183.19, 0.0421, null].map(formatThroughput)).toEqual([
      "134,000",
      "3,180",
      "0.0421",
      "unknown",
    ]);
  });
  it("keeps every byte in the exact form", () => {
    expect(formatBytesExact(8901591040)).toBe("8,901,591,040 bytes");
    expect(formatBytesExact(1)).toBe("1 byte");
    expect(formatBytesExact(null)).toBe("unknown");
  });
});

it("writes a score with its sign, and none for zero", () => {
  expect([4.97, -0.1, -0.001, null].map(formatScore)).toEqual(["+4.97", "−0.10", "0.00", "unknown"]);
});

describe("moments", () => {
  const now = new Date("2026-11-20T12:00:00Z");
  it.each([
    ["2026-11-20T11:59:58Z", "just now"],
    ["2026-11-20T11:59:30Z", "30 seconds ago"],
    ["2026-11-20T11:55:00Z", "5 minutes ago"],
    ["2026-11-20T09:00:00Z", "3 hours ago"],
    ["2026-11-19T09:00:00Z", "yesterday"],
    ["not a date", "unknown"],
    [null, "unknown"],
  ])("%s is %s", (iso, text) => {
    expect(formatRelative(iso, now)).toBe(text);
  });
  it("prints the moment in UTC", () => {
    expect(formatAbsolute("2026-11-20T13:00:00+01:00")).toBe("2026-11-20 12:00:00 UTC");
    expect(formatAbsolute(undefined)).toBe("unknown");
  });
});
