import type { Plan } from "@/api/types";
import { QuestionCard } from "@/components/ui/question-card";

/** What the plan assumes, and what it did not know. */
export function NotesCard({ plan }: { plan: Plan }) {
  if (plan.assumptions.length + plan.unknowns.length === 0) return null;
  return (
    <QuestionCard title="What does the plan rest on?">
      <div
        style={{
          display: "grid",
          gridTemplateColumns: "repeat(auto-fit, minmax(18rem, 1fr))",
          gap: "1rem 2rem",
        }}
      >
        <Notes title="Unknown" notes={plan.unknowns} empty="Nothing that matters is unknown." />
        <Notes title="Assumed" notes={plan.assumptions} empty="Nothing is assumed." />
      </div>
    </QuestionCard>
  );
}

function Notes({ title, notes, empty }: { title: string; notes: readonly string[]; empty: string }) {
  return (
    <div>
      <h3 style={{ margin: "0 0 0.25rem", fontSize: 15 }}>{title}</h3>
      {notes.length === 0 ? (
        <p style={{ margin: 0, color: "var(--hp-text-dim)" }}>{empty}</p>
      ) : (
        <ul style={{ margin: 0, paddingLeft: "1.1rem", lineHeight: 1.55 }}>
          {notes.map((note) => (
            <li key={note}>{note}</li>
          ))}
        </ul>
      )}
    </div>
  );
}
