import { ConnectMachine } from "@/components/connect/connect-machine";
import { QuestionCard } from "@/components/ui/question-card";

/** How machines are connected: one command, and an enrolment token that expires by itself. */
export function EnrolCard() {
  return (
    <QuestionCard
      title="How is a machine connected?"
      description="An enrolment token may only create agent tokens, one per machine. The command asks for it, so that it is in no shell history."
    >
      <ConnectMachine />
    </QuestionCard>
  );
}
