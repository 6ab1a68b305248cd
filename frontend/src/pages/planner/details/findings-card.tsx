import type { Plan } from "@/api/types";
import { Disclosure } from "@/components/ui/disclosure";
import { Findings } from "@/components/ui/findings";
import { FoldCard } from "@/components/ui/fold-card";
import { StateText } from "@/components/ui/states";

/** What must be fixed before the plan is rolled out. Passed checks are folded away. */
export function FindingsCard({ plan }: { plan: Plan }) {
  const open = plan.findings.filter(({ state }) => state === "wrong" || state === "attention");
  const unknown = plan.findings.filter(({ state }) => state === "unknown");
  const fine = plan.findings.filter(({ state }) => state === "ok");
  return (
    <FoldCard title={findingsTitle(plan)} open={plan.findings.some(({ state }) => state === "wrong")}>
      {plan.findings.length === 0 && <StateText>No check applies to this plan.</StateText>}
      {open.length > 0 && <Findings findings={open} />}
      {unknown.length > 0 && (
        <Disclosure
          label={`${unknown.length} ${unknown.length === 1 ? "check has" : "checks have"} no verdict: what is missing`}
          open={open.length === 0}
        >
          <Findings findings={unknown} />
        </Disclosure>
      )}
      {fine.length > 0 && (
        <Disclosure label={`${fine.length} ${fine.length === 1 ? "check" : "checks"} passed`}>
          <Findings findings={fine} />
        </Disclosure>
      )}
    </FoldCard>
  );
}

function findingsTitle(plan: Plan): string {
  const count = (state: string) => plan.findings.filter((finding) => finding.state === state).length;
  const wrong = count("wrong");
  const attention = count("attention");
  const unknown = count("unknown");
  if (wrong > 0) return `${wrong} ${wrong === 1 ? "problem" : "problems"} to fix before rollout.`;
  if (attention > 0) return `${attention} ${attention === 1 ? "finding needs" : "findings need"} attention.`;
  if (unknown > 0)
    return `No problem found; ${unknown} ${unknown === 1 ? "check has" : "checks have"} no verdict.`;
  return "Every check passed.";
}
