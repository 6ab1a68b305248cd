import type { Plan } from "@/api/types";
import { Findings } from "@/components/ui/findings";
import { QuestionCard } from "@/components/ui/question-card";
import { StateText } from "@/components/ui/states";

/** What must be mended or looked at before or with the plan. What is in order is folded away. */
export function FindingsCard({ plan }: { plan: Plan }) {
  const open = plan.findings.filter(({ state }) => state !== "ok");
  const fine = plan.findings.filter(({ state }) => state === "ok");
  return (
    <QuestionCard title={findingsTitle(plan)}>
      {plan.findings.length === 0 && <StateText>No check had anything to look at.</StateText>}
      {open.length > 0 && <Findings findings={open} />}
      {fine.length > 0 && (
        <details style={{ fontSize: 15 }}>
          <summary style={{ cursor: "pointer", color: "var(--hp-text-dim)", fontSize: 14 }}>
            {fine.length} {fine.length === 1 ? "check" : "checks"} in order
          </summary>
          <div style={{ marginTop: 12 }}>
            <Findings findings={fine} />
          </div>
        </details>
      )}
    </QuestionCard>
  );
}

function findingsTitle(plan: Plan): string {
  const count = (state: string) => plan.findings.filter((finding) => finding.state === state).length;
  const wrong = count("wrong");
  const attention = count("attention");
  const unknown = count("unknown");
  if (wrong > 0) return `${wrong} ${wrong === 1 ? "thing is" : "things are"} wrong and must be mended.`;
  if (attention > 0) return `${attention} ${attention === 1 ? "thing needs" : "things need"} attention.`;
  if (unknown > 0)
    return `Nothing is known to be wrong; ${unknown} ${unknown === 1 ? "check is" : "checks are"} open.`;
  return "Every check is in order.";
}
