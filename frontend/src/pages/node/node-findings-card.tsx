import type { NodeDetail } from "@/api/types";
import { StateBadge } from "@/components/ui/badges";
import { FindingName } from "@/components/ui/findings";
import { QuestionCard } from "@/components/ui/question-card";
import { StateText } from "@/components/ui/states";
import { When } from "@/components/ui/values";
import { subjectWords } from "@/lib/subject-words";
import { formatCount } from "@/lib/units";
import classes from "./node-findings-card.module.css";

const RANK = { wrong: 0, attention: 1 } as const;

/** Collectors that could not read their part: what depends on them is unknown, and not in order. */
function blindSpots(node: Pick<NodeDetail, "collectors">): NodeDetail["collectors"] {
  return node.collectors.filter(({ status }) => status !== "ok" && status !== "skipped");
}

/** The card's title: how much is wrong, and how much could not be judged. */
function findingsTitle(node: Pick<NodeDetail, "findings" | "collectors">): string {
  const wrong = node.findings.filter(({ state }) => state === "wrong").length;
  const attention = node.findings.length - wrong;
  const blind = blindSpots(node).length;
  if (node.findings.length === 0)
    return blind === 0
      ? "Nothing is wrong by the newest report."
      : `Nothing is known to be wrong; ${formatCount(blind)} ${blind === 1 ? "part" : "parts"} of the report could not be read.`;
  const parts = [
    wrong > 0 ? `${formatCount(wrong)} ${wrong === 1 ? "thing is" : "things are"} wrong` : null,
    attention > 0 ? `${formatCount(attention)} ${attention === 1 ? "needs" : "need"} attention` : null,
  ];
  return `${parts.filter(Boolean).join(", ")}.`;
}

/** What is wrong with the node, the worst first, each with its reason, its fix and since when. */
export function NodeFindingsCard({ node }: { node: NodeDetail }) {
  const findings = [...node.findings].sort((a, b) => RANK[a.state] - RANK[b.state]);
  const blind = blindSpots(node);
  return (
    <QuestionCard title={findingsTitle(node)}>
      {findings.length > 0 && (
        <ul className={classes.list}>
          {findings.map((finding) => (
            <li key={`${finding.code}:${finding.subject}`} className={classes.finding}>
              <StateBadge state={finding.state} />
              <div>
                <p className={classes.title}>
                  {finding.subject !== node.name && `${subjectWords(finding.subject)}: `}
                  {finding.title}
                </p>
                <p className={classes.reason}>{finding.reason}</p>
                <p className={classes.reason}>
                  <strong>Fix:</strong> {finding.fix}
                </p>
                <p className={classes.since}>
                  <FindingName code={finding.code} />, since <When iso={finding.since} />
                </p>
              </div>
            </li>
          ))}
        </ul>
      )}
      {blind.length > 0 && (
        <StateText>
          Not read: {blind.map(({ name, status, reason }) => `${name} (${reason ?? status})`).join("; ")}.
        </StateText>
      )}
    </QuestionCard>
  );
}
