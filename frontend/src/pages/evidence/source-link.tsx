import type { ReactNode } from "react";

/** A host and a path, as sources spell them: "github.com/cmuparlay/parlaylib/issues/71". */
const ADDRESS = /\b((?:[a-z0-9-]+\.)+(?:com|org|net|google)(?:\/[^\s,;()]+)?)/i;
/** A FreeBSD review is named by its number after the host. */
const REVIEW = /^reviews\.freebsd\.org (D\d+)/;

/** Where a source can be read, if it spells an address with a path; a bare host would only be a guess. */
export function sourceUrl(source: string): string | null {
  const review = REVIEW.exec(source)?.[1];
  if (review) return `https://reviews.freebsd.org/${review}`;
  const address = ADDRESS.exec(source)?.[1];
  return address?.includes("/") ? `https://${address}` : null;
}

/** A source's words, linked where they hold an address. Nothing is loaded from there until the reader follows it. */
export function SourceLink({ source, children }: { source: string; children?: ReactNode }) {
  const url = sourceUrl(source);
  if (url === null) return <>{children ?? source}</>;
  return (
    <a href={url} className="hp-anchor" target="_blank" rel="noreferrer noopener">
      {children ?? source}
    </a>
  );
}
