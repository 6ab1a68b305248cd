import { List, SimpleGrid, Title } from "@mantine/core";
import type { Plan } from "@/api/types";
import { QuestionCard } from "@/components/ui/question-card";
import { StateText } from "@/components/ui/states";

/** What the plan assumes, and what it did not know. */
export function NotesCard({ plan }: { plan: Plan }) {
  if (plan.assumptions.length + plan.unknowns.length === 0) return null;
  return (
    <QuestionCard title="What does the plan rest on?">
      <SimpleGrid cols={{ base: 1, md: 2 }}>
        <Notes title="Unknown" notes={plan.unknowns} empty="The inputs left nothing open." />
        <Notes title="Assumed" notes={plan.assumptions} empty="Nothing is assumed." />
      </SimpleGrid>
    </QuestionCard>
  );
}

function Notes({ title, notes, empty }: { title: string; notes: readonly string[]; empty: string }) {
  return (
    <div>
      <Title order={3}>{title}</Title>
      {notes.length === 0 ? (
        <StateText>{empty}</StateText>
      ) : (
        <List size="sm">
          {notes.map((note) => (
            <List.Item key={note}>{note}</List.Item>
          ))}
        </List>
      )}
    </div>
  );
}
