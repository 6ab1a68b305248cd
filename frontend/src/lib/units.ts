/**
 * The one place where numbers become text. Sizes are binary (1 GiB = 1024^3 bytes) with three significant
 * digits; an unknown value (`null`) is the word "unknown", never zero.
 */
export const KIB = 1024;
export const MIB = 1024 ** 2;
export const GIB = 1024 ** 3;
export const TIB = 1024 ** 4;

export const UNKNOWN = "unknown";
const MINUS = "\u2212";
export const NBSP = "\u00a0";
const PERCENT = `${NBSP}%`;

const BYTE_UNITS = ["KiB", "MiB", "GiB", "TiB", "PiB"] as const;

type Maybe<T> = T | null | undefined;

/**
 * `toLocaleString` reads its options anew each time, fifty times the work of the formatter it then uses. A formatter is
 * made when it is first used: those of this module are 20 ms of the first page's scripts.
 */
function numbers(options?: Intl.NumberFormatOptions): (value: number) => string {
  let format: Intl.NumberFormat | undefined;
  return (value) => {
    format ??= new Intl.NumberFormat("en-US", options);
    return format.format(value);
  };
}

const plain = numbers();
const atMostOneDecimal = numbers({ maximumFractionDigits: 1 });
const withDecimals = [0, 1].map((digits) =>
  numbers({ minimumFractionDigits: digits, maximumFractionDigits: digits }),
) as [(value: number) => string, (value: number) => string];
const threeSignificant = numbers({ maximumSignificantDigits: 3 });

function isUnknown(value: Maybe<number>): value is null | undefined {
  return value === null || value === undefined || !Number.isFinite(value);
}

/** A number as it stands on an axis: up to three decimals, with thousands separators. */
export const formatTick = plain;

/** A whole number with thousands separators: 4244 -> "4,244". */
export function formatCount(value: Maybe<number>): string {
  if (isUnknown(value)) return UNKNOWN;
  const digits = plain(Math.abs(Math.round(value)));
  return value < 0 && digits !== "0" ? `${MINUS}${digits}` : digits;
}

/** A count with its noun: 1 -> "1 node", 4244 -> "4,244 nodes". */
export function formatCounted(count: number, one: string, many = `${one}s`): string {
  return `${formatCount(count)} ${count === 1 ? one : many}`;
}

/** Three significant digits; what rounds to a whole number has no decimals. As the service writes it (planner/units.py). */
function sizeDigits(value: number): string {
  const digits = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
  const scaled = value * 10 ** digits;
  // Halfway between two texts (12.25) the service takes the even one, `toFixed` the larger.
  const isHalf = scaled % 1 === 0.5;
  const even = Math.floor(scaled) % 2 === 0 ? Math.floor(scaled) : Math.ceil(scaled);
  return (isHalf ? even / 10 ** digits : value).toFixed(digits).replace(/\.0+$/, "");
}

/**
 * A size for reading: 8901591040 -> "8.29 GiB". The same text as the service's sentences beside it; both are tested with
 * the vectors of units.golden.json.
 */
export function formatBytes(bytes: Maybe<number>): string {
  if (isUnknown(bytes)) return UNKNOWN;
  const size = Math.abs(Math.round(bytes));
  const sign = bytes < 0 && size > 0 ? MINUS : "";
  if (size < KIB) return `${sign}${size}${NBSP}B`;
  let unit = 0;
  // 1,023.7 MiB is read as 1 GiB, not as four digits.
  while (unit < BYTE_UNITS.length - 1 && size / KIB ** (unit + 1) >= 999.5) unit += 1;
  return `${sign}${sizeDigits(size / KIB ** (unit + 1))}${NBSP}${BYTE_UNITS[unit]}`;
}

/** A signed difference of sizes: "+12 MiB", "−3 GiB". */
export function formatBytesDelta(bytes: Maybe<number>): string {
  if (isUnknown(bytes)) return UNKNOWN;
  return bytes > 0 ? `+${formatBytes(bytes)}` : formatBytes(bytes);
}

/** The exact size, for tooltips and for copying: "8,901,591,040 bytes". */
export function formatBytesExact(bytes: Maybe<number>): string {
  if (isUnknown(bytes)) return UNKNOWN;
  return `${formatCount(bytes)} ${Math.abs(bytes) === 1 ? "byte" : "bytes"}`;
}

/** Nanoseconds with one decimal. `unit` false leaves the unit to the table's header. */
export function formatNs(ns: Maybe<number>, unit = true): string {
  if (isUnknown(ns)) return UNKNOWN;
  const text = withDecimals[1](Math.abs(ns));
  const sign = ns < 0 && text !== "0.0" ? MINUS : "";
  return unit ? `${sign}${text}${NBSP}ns` : `${sign}${text}`;
}

/** A signed difference in ns: "+3.1 ns", "−35.1 ns". */
export function formatNsDelta(ns: Maybe<number>): string {
  if (isUnknown(ns)) return UNKNOWN;
  return ns >= 0.05 ? `+${formatNs(ns)}` : formatNs(ns);
}

interface Interval {
  low: number;
  high: number;
}

/** The finest step an interval deserves: a power of ten, at most a tenth of its width, at least 0.1. */
function stepOf({ low, high }: Interval): number {
  const tenth = Math.abs(high - low) / 10;
  return tenth < 1 ? 0.1 : 10 ** Math.floor(Math.log10(tenth));
}

/** To a step; what is not zero but rounds to it keeps its first digit: (0.4, 1) -> "0.4". */
function toStep(value: number, step: number): string {
  const size = Math.abs(value);
  const rounded = Math.round(size / step) * step;
  const sign = value < 0 ? MINUS : "";
  if (rounded === 0 && size > 0) {
    return size < 0.01 ? (value < 0 ? `${MINUS}0.01` : "<0.01") : `${sign}${Number(size.toPrecision(1))}`;
  }
  return `${sign}${withDecimals[step < 1 ? 1 : 0](rounded)}`;
}

/** Nanoseconds as exact as their interval allows: 14.26 within 5.1 to 28.4 -> "14 ns". */
export function formatNsWithin(ns: Maybe<number>, interval: Interval): string {
  return isUnknown(ns) ? UNKNOWN : `${toStep(ns, stepOf(interval))}${NBSP}ns`;
}

/** An interval, to the precision of its width or of another one: "5 to 28 ns". */
export function formatNsInterval(interval: Interval, precision: Interval = interval): string {
  const step = stepOf(precision);
  const [low, high] = [toStep(interval.low, step), toStep(interval.high, step)];
  return `${low === high ? "" : `${low} to `}${high}${NBSP}ns`;
}

/** A throughput in a unit that only its owner knows: three digits, no exponent. 134037 -> "134,000". */
export function formatThroughput(value: Maybe<number>): string {
  if (isUnknown(value)) return UNKNOWN;
  return threeSignificant(value);
}

/** A change with its sign and one decimal: 0.312 -> "+31.2 %". The service's `format_change` writes the same. */
export function formatPercentChange(fraction: Maybe<number>): string {
  if (isUnknown(fraction)) return UNKNOWN;
  const percent = fraction * 100;
  const text = withDecimals[1](Math.abs(percent));
  return `${text === "0.0" ? "" : percent < 0 ? MINUS : "+"}${text}${PERCENT}`;
}

/** A share of a whole, unsigned: 0.4213 -> "42.1 %". The service's `format_share` writes the same. */
export function formatShare(fraction: Maybe<number>): string {
  if (isUnknown(fraction)) return UNKNOWN;
  const percent = fraction * 100;
  if (fraction > 0 && fraction < 0.001) return `<0.1${PERCENT}`;
  return `${atMostOneDecimal(percent)}${PERCENT}`;
}

/** A probability with two digits; only 0 and 1 are 0 and 100 %. The service's `format_chance` writes the same. */
export function formatChance(probability: Maybe<number>): string {
  if (isUnknown(probability)) return UNKNOWN;
  const percent = probability * 100;
  if (percent >= 99.5 && percent < 100) return `more than 99${PERCENT}`;
  if (percent > 0 && percent < 0.01) return `less than 0.01${PERCENT}`;
  return `${percent >= 10 ? withDecimals[0](percent) : Number(percent.toPrecision(2))}${PERCENT}`;
}

/** A score with its sign: "+4.97", "−0.10". */
export function formatScore(score: Maybe<number>): string {
  if (isUnknown(score)) return UNKNOWN;
  const size = Math.abs(score).toFixed(2);
  if (Number(size) === 0) return size;
  return `${score > 0 ? "+" : MINUS}${size}`;
}

/** A duration for reading: 41.2 -> "41 s", 95 -> "1 min 35 s". */
export function formatDuration(seconds: Maybe<number>): string {
  if (isUnknown(seconds)) return UNKNOWN;
  if (seconds < 1) return `${Math.round(seconds * 1000)}${NBSP}ms`;
  if (seconds < 10) return `${Number(seconds.toFixed(1))}${NBSP}s`;
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole}${NBSP}s`;
  const minutes = Math.floor(whole / 60);
  if (minutes < 60) return whole % 60 ? `${minutes}${NBSP}min ${whole % 60}${NBSP}s` : `${minutes}${NBSP}min`;
  const hours = Math.floor(minutes / 60);
  return minutes % 60 ? `${hours}${NBSP}h ${minutes % 60}${NBSP}min` : `${hours}${NBSP}h`;
}

const RELATIVE_STEPS: readonly [limit: number, divisor: number, unit: Intl.RelativeTimeFormatUnit][] = [
  [60, 1, "second"],
  [3600, 60, "minute"],
  [86_400, 3600, "hour"],
  [86_400 * 30, 86_400, "day"],
  [86_400 * 365, 86_400 * 30, "month"],
  [Number.POSITIVE_INFINITY, 86_400 * 365, "year"],
];
let relative: Intl.RelativeTimeFormat | undefined;
function relativeFormat(): Intl.RelativeTimeFormat {
  relative ??= new Intl.RelativeTimeFormat("en", { numeric: "auto" });
  return relative;
}

/** How long ago (or ahead) a moment is: "5 minutes ago". */
export function formatRelative(iso: Maybe<string>, now: Date): string {
  if (!iso) return UNKNOWN;
  const seconds = (new Date(iso).getTime() - now.getTime()) / 1000;
  if (!Number.isFinite(seconds)) return UNKNOWN;
  if (Math.abs(seconds) < 10) return "just now";
  for (const [limit, divisor, unit] of RELATIVE_STEPS) {
    if (Math.abs(seconds) < limit) return relativeFormat().format(Math.trunc(seconds / divisor), unit);
  }
  return UNKNOWN;
}

/** The moment itself, in UTC so that two readers see the same text. */
export function formatAbsolute(iso: Maybe<string>): string {
  if (!iso) return UNKNOWN;
  const date = new Date(iso);
  if (Number.isNaN(date.getTime())) return UNKNOWN;
  return `${date.toISOString().slice(0, 19).replace("T", " ")} UTC`;
}
