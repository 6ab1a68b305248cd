import "@/theme/mantine-pages.css";
import { NativeSelect } from "@mantine/core";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { PlansTable } from "@/components/plans/plans-table";
import { PageHeader } from "@/components/ui/page-header";
import { QuestionCard } from "@/components/ui/question-card";
import { PLAN_STEPS } from "@/search";

const WORDS: Record<(typeof PLAN_STEPS)[number], string> = {
  draft: "Drafts",
  proposed: "Proposed",
  approved: "Approved",
  in_force: "In force",
  superseded: "Superseded",
};

/** All kept plans; the approver's page is the one of the proposed. */
export function PlansPage() {
  const { state } = useSearch({ from: "/app/plans" });
  const navigate = useNavigate({ from: "/plans" });
  return (
    <>
      <PageHeader title="Plans" headline="What was kept, who decided, and what is in force." />
      <QuestionCard
        title="Which plan waits for whom?"
        actions={
          <NativeSelect
            size="xs"
            aria-label="State"
            value={state ?? ""}
            data={[
              { value: "", label: "All states" },
              ...PLAN_STEPS.map((value) => ({ value, label: WORDS[value] })),
            ]}
            onChange={(event) =>
              void navigate({
                search: { state: PLAN_STEPS.find((one) => one === event.currentTarget.value) },
                replace: true,
              })
            }
          />
        }
      >
        <PlansTable
          state={state}
          withNode
          none={
            state
              ? "No plan is in this state."
              : "No plan is kept yet. Plan a node, then choose Keep this plan: it is frozen, and can be signed."
          }
        />
      </QuestionCard>
    </>
  );
}
