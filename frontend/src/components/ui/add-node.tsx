import { Box, Button, Group } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { sessionQuery } from "@/api/session";
import { useCreateToken } from "@/api/tokens";
import { TextLink } from "@/components/ui/text-link";
import { CommandLine } from "./command-line";
import { ErrorState, StateText } from "./states";

/**
 * The command that makes a machine report here; `token` null leaves a place for it. The token goes through a file that
 * only its owner can read, so that it is in no list of processes.
 */
export function addNodeCommand(origin: string, token: string | null): string {
  return [
    `(umask 077 && echo ${token ?? "TOKEN"} > hugeplan.token)`,
    `hugeplan-agent once --server ${origin} --token-file hugeplan.token --measure quick`,
  ].join(" && ");
}

/** The one command that adds a node. An administrator can make its token right here. */
export function AddNode() {
  const { data: session } = useQuery(sessionQuery());
  const create = useCreateToken();
  const token = create.data?.token ?? null;
  return (
    <>
      <StateText>
        Run this on the machine you want to plan. It observes and measures for about a minute, and changes
        nothing.
      </StateText>
      <Box w="100%" maw={720}>
        <CommandLine command={addNodeCommand(window.location.origin, token)} />
      </Box>
      {token ? (
        <StateText>The token is shown only now. It may do nothing but send this machine's reports.</StateText>
      ) : session?.role === "admin" ? (
        <Group>
          <Button
            variant="default"
            size="sm"
            loading={create.isPending}
            onClick={() => create.mutate({ name: "agent", role: "agent" })}
          >
            Make a token for it
          </Button>
        </Group>
      ) : (
        <StateText>
          TOKEN is an agent token. An administrator makes one under{" "}
          <TextLink to="/settings">Settings</TextLink>.
        </StateText>
      )}
      {create.isError && <ErrorState error={create.error} bare />}
    </>
  );
}
