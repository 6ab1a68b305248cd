import { Button, Group, SegmentedControl } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { sessionQuery } from "@/api/session";
import { useCreateToken } from "@/api/tokens";
import { CommandLine } from "@/components/ui/command-line";
import { ErrorState, StateText } from "@/components/ui/states";
import { When } from "@/components/ui/values";
import { hostCommand, kubernetesCommand, shellCommand } from "./connect-commands";

const DAY_SECONDS = 86_400;

const PLACES = {
  host: { label: "A host", command: hostCommand },
  kubernetes: { label: "Kubernetes", command: kubernetesCommand },
  shell: { label: "Without the package", command: shellCommand },
} as const;

/** The command that leaves an agent on a machine, and an enrolment token for it that expires by itself. */
export function ConnectMachine() {
  const [where, setWhere] = useState<keyof typeof PLACES>("host");
  const { data: session } = useQuery(sessionQuery());
  const create = useCreateToken();
  return (
    <>
      <SegmentedControl
        size="xs"
        className="hp-start"
        value={where}
        onChange={(value) => setWhere(value as keyof typeof PLACES)}
        aria-label="Where the agent runs"
        data={Object.entries(PLACES).map(([value, { label }]) => ({ value, label }))}
      />
      <CommandLine command={PLACES[where].command(window.location.origin)} />
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
      ) : session?.role === "admin" ? (
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
      ) : (
        <StateText>The command asks for an enrolment token. An administrator creates one here.</StateText>
      )}
      {create.isError && <ErrorState error={create.error} bare />}
    </>
  );
}
