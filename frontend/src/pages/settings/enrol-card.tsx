import { Button, Group, SegmentedControl } from "@mantine/core";
import { useState } from "react";
import { useCreateToken } from "@/api/tokens";
import { CommandLine } from "@/components/ui/command-line";
import { QuestionCard } from "@/components/ui/question-card";
import { ErrorState, StateText } from "@/components/ui/states";
import { When } from "@/components/ui/values";
import { hostCommand, kubernetesCommand } from "./enrol-commands";

const DAY_SECONDS = 86_400;

/** How machines are connected: one command, and an enrolment token that expires by itself. */
export function EnrolCard() {
  const [where, setWhere] = useState("host");
  const create = useCreateToken();
  const origin = window.location.origin;
  return (
    <QuestionCard
      title="How is a machine connected?"
      description="An enrolment token may only create agent tokens, one per machine. The command asks for it, so that it is in no shell history."
      actions={
        <SegmentedControl
          size="xs"
          value={where}
          onChange={setWhere}
          aria-label="Where the agent runs"
          data={[
            { value: "host", label: "On a host" },
            { value: "kubernetes", label: "In Kubernetes" },
          ]}
        />
      }
    >
      <CommandLine command={where === "host" ? hostCommand(origin) : kubernetesCommand(origin)} />
      {create.data ? (
        <div role="status">
          <StateText>
            Paste this enrolment token when the command asks for it. It is shown only now
            {create.data.expires_at && (
              <>
                , and expires <When iso={create.data.expires_at} />
              </>
            )}
            .
          </StateText>
          <CommandLine command={create.data.token} what="the token" />
        </div>
      ) : (
        <Group>
          <Button
            variant="default"
            size="sm"
            loading={create.isPending}
            onClick={() =>
              create.mutate({ name: "enrolment", role: "enrolment", expires_in_seconds: 7 * DAY_SECONDS })
            }
          >
            Enrolment token for 7 days
          </Button>
        </Group>
      )}
      {create.isError && <ErrorState error={create.error} bare />}
    </QuestionCard>
  );
}
