import { Tooltip } from "@mantine/core";
import type { ReactNode } from "react";
import {
  formatAbsolute,
  formatBytes,
  formatBytesExact,
  formatPages,
  formatRelative,
  UNKNOWN,
} from "@/lib/units";

type Maybe<T> = T | null | undefined;

/** The word for what is not known, hatched; `why` is its reason. */
export function Unknown({ why }: { why?: string | null }) {
  const text = (
    <span className="hp-hatched" style={{ padding: "0 0.35rem", borderRadius: 4 }}>
      {UNKNOWN}
    </span>
  );
  return why ? <Tooltip label={why}>{text}</Tooltip> : text;
}

/** A size for reading; the exact bytes are in its tooltip. */
export function Bytes({ value, why }: { value: Maybe<number>; why?: string | null }) {
  if (value === null || value === undefined) return <Unknown why={why} />;
  return (
    <Tooltip label={formatBytesExact(value)}>
      <span>{formatBytes(value)}</span>
    </Tooltip>
  );
}

/** A page count with its size; the tooltip has the exact bytes. */
export function Pages({
  count,
  pageBytes,
  why,
}: {
  count: Maybe<number>;
  pageBytes: number;
  why?: string | null;
}) {
  if (count === null || count === undefined) return <Unknown why={why} />;
  return (
    <Tooltip label={`${formatBytes(count * pageBytes)} (${formatBytesExact(count * pageBytes)})`}>
      <span>{formatPages(count, pageBytes)}</span>
    </Tooltip>
  );
}

/** A moment, relative, with the absolute time in its tooltip. */
export function When({ iso }: { iso: Maybe<string> }) {
  if (!iso) return <Unknown />;
  return (
    <Tooltip label={formatAbsolute(iso)}>
      <time dateTime={iso}>{formatRelative(iso, new Date())}</time>
    </Tooltip>
  );
}

/** A value or the hatched word, for anything already formatted. */
export function Known({ value, why }: { value: Maybe<ReactNode>; why?: string | null }) {
  if (value === null || value === undefined || value === UNKNOWN || value === "")
    return <Unknown why={why} />;
  return <>{value}</>;
}
