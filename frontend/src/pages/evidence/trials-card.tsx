import type { FleetTrial } from "@/api/types";
import { TrialsTable, trialsTitle } from "@/components/trials/trials-table";
import { QuestionCard } from "@/components/ui/question-card";
import { StateText } from "@/components/ui/states";

/** What `hugeplan trial` measured on nodes of this fleet. */
export function TrialsOfFleetCard({ trials }: { trials: readonly FleetTrial[] }) {
  return (
    <QuestionCard title={trialsTitle(trials)} description="Trials on your own nodes, newest first.">
      {trials.length === 0 ? (
        <StateText>
          <span className="hp-mono">hugeplan trial postgresql --to {window.location.origin}</span> measures on
          a node what a page size gains there.
        </StateText>
      ) : (
        <TrialsTable trials={trials} />
      )}
    </QuestionCard>
  );
}
