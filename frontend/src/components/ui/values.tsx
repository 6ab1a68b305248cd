import type { ReactNode } from "react";
import { pageSizeShort } from "@/lib/page-size";
import { formatAbsolute, formatBytes, formatBytesExact, formatRelative, UNKNOWN } from "@/lib/units";
import { useNow } from "@/lib/use-now";
import { Hint } from "./hint";

type Maybe<T> = T | null | undefined;

/** The word for what is not known, hatched; `why` is its reason. */
export function Unknown({ why }: { why?: string | null }) {
  return (
    <Hint label={why} className="hp-hatched hp-unknown">
      {UNKNOWN}
    </Hint>
  );
}

/** A size for reading; the exact bytes are in its hint. */
export function Bytes({ value, why }: { value: Maybe<number>; why?: string | null }) {
  if (value === null || value === undefined) return <Unknown why={why} />;
  return <Hint label={formatBytesExact(value)}>{formatBytes(value)}</Hint>;
}

/** A page size by its name; the exact bytes are in its hint. */
export function PageSize({ bytes, why }: { bytes: Maybe<number>; why?: string | null }) {
  if (bytes === null || bytes === undefined) return <Unknown why={why} />;
  return <Hint label={formatBytesExact(bytes)}>{pageSizeShort(bytes)}</Hint>;
}

/** A moment, relative to a clock that ticks, with the absolute time in its hint. */
export function When({ iso }: { iso: Maybe<string> }) {
  const now = useNow();
  if (!iso) return <Unknown />;
  return (
    <Hint label={formatAbsolute(iso)}>
      <time dateTime={iso}>{formatRelative(iso, now)}</time>
    </Hint>
  );
}

/** A value or the hatched word, for anything already formatted. */
export function Known({ value, why }: { value: Maybe<ReactNode>; why?: string | null }) {
  if (value === null || value === undefined || value === UNKNOWN || value === "")
    return <Unknown why={why} />;
  return <>{value}</>;
}

/** A name of any length in one line; all of it in the hint. */
export function LongName({ name }: { name: string }) {
  return (
    <span className="hp-name">
      <Hint label={name} disabled={name.length < 40}>
        {name}
      </Hint>
    </span>
  );
}
