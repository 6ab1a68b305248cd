import { useQuery } from "@tanstack/react-query";
import { nodeTrialsQuery } from "@/api/nodes";
import { TrialsTable, trialsTitle } from "@/components/trials/trials-table";
import { QueryView } from "@/components/ui/query-view";
import { QuestionCard } from "@/components/ui/question-card";
import { TableSkeleton } from "@/components/ui/skeletons";
import { StateText } from "@/components/ui/states";

/** What was measured on this node by `hugeplan trial`. */
export function TrialsCard({ nodeId }: { nodeId: string }) {
  const query = useQuery(nodeTrialsQuery(nodeId));
  return (
    <QueryView query={query} skeleton={<TableSkeleton rows={3} />}>
      {({ items }) => (
        <QuestionCard
          title={trialsTitle(items)}
          description="A trial takes the prediction's place in plans of this node where engine, page size and shape match."
        >
          {items.length === 0 ? (
            <StateText>
              Run <span className="hp-mono">hugeplan trial postgresql --to {window.location.origin}</span> on
              the node. It takes about ten minutes, beside the server that runs, and gives everything back.
            </StateText>
          ) : (
            <TrialsTable trials={items} />
          )}
        </QuestionCard>
      )}
    </QueryView>
  );
}
