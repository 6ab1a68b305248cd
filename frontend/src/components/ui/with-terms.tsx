import type { ReactNode } from "react";
import type { TermName } from "./glossary";
import { Term } from "./term";

/** Words of sentences that have an explanation; the longer ones first. */
const WORDS: readonly (readonly [RegExp, TermName])[] = [
  [/\bhuge page pools?\b|\bhuge pages?\b/, "huge-page-pool"],
  [/\bNUMA nodes?\b/, "numa-node"],
  [/\bpage tables?\b/, "page-tables"],
  [/\bpage walks?\b|\bwalks?\b/, "page-walk"],
  [/\bTLB reach\b|\breach\b/, "tlb-reach"],
  [/\bpools?\b/, "huge-page-pool"],
];

/** A sentence as words and terms: each term is explained where it stands first. */
export function termParts(text: string): (string | { term: TermName; text: string })[] {
  const found = new Map<TermName, { start: number; text: string }>();
  const isFree = (start: number, end: number) =>
    [...found.values()].every((other) => end <= other.start || start >= other.start + other.text.length);
  for (const [pattern, term] of WORDS) {
    const match = pattern.exec(text);
    if (match && !found.has(term) && isFree(match.index, match.index + match[0].length))
      found.set(term, { start: match.index, text: match[0] });
  }
  const parts: (string | { term: TermName; text: string })[] = [];
  let done = 0;
  for (const [term, { start, text: word }] of [...found].sort(([, a], [, b]) => a.start - b.start)) {
    if (start > done) parts.push(text.slice(done, start));
    parts.push({ term, text: word });
    done = start + word.length;
  }
  if (done < text.length) parts.push(text.slice(done));
  return parts;
}

/** A sentence whose terms are explained in place. */
export function WithTerms({ text }: { text: string }): ReactNode {
  return termParts(text).map((part) =>
    typeof part === "string" ? (
      part
    ) : (
      <Term key={part.term} name={part.term}>
        {part.text}
      </Term>
    ),
  );
}
