import type { Finding } from "@/api/types";
import { subjectWords } from "@/lib/subject-words";
import { StateBadge } from "./badges";
import classes from "./findings.module.css";

const RANK = { wrong: 0, attention: 1, unknown: 2, ok: 3 } as const;

/** The worst first; an unknown is never sorted with what is in order. */
export function sortFindings(findings: readonly Finding[]): Finding[] {
  return [...findings].sort((a, b) => RANK[a.state] - RANK[b.state]);
}

/** A finding's name, which leads to what it means in the reference of this version. */
export function FindingName({ code }: { code: string }) {
  return (
    <a
      href={`/api/docs/findings.html#${code}`}
      className="hp-anchor hp-small hp-mono"
      title="What it means, and what to do"
    >
      {code}
    </a>
  );
}

/** Findings: what, why it matters, and the fix. */
export function Findings({ findings }: { findings: readonly Finding[] }) {
  return (
    <ul className={classes.list}>
      {sortFindings(findings).map((finding) => (
        <li key={`${finding.code}:${finding.subject}:${finding.title}`} className={classes.finding}>
          <div>
            <StateBadge state={finding.state} />
          </div>
          <div>
            <p className={classes.title}>
              {finding.subject && <span className={classes.subject}>{subjectWords(finding.subject)}: </span>}
              {finding.title}
            </p>
            {finding.reason && <p className={classes.reason}>{finding.reason}</p>}
            {finding.fix && (
              <p className={classes.fix}>
                <strong>Fix:</strong> {finding.fix}
              </p>
            )}
            {finding.evidence.length > 0 && (
              <ul className={classes.evidence}>
                {finding.evidence.map((term) => (
                  <li key={term.name}>
                    {term.name}: {term.value} ({term.source})
                  </li>
                ))}
              </ul>
            )}
            <FindingName code={finding.code} />
          </div>
        </li>
      ))}
    </ul>
  );
}
