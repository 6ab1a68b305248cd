import { Box, Button, Group } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { sessionQuery } from "@/api/session";
import { useCreateToken } from "@/api/tokens";
import { TextLink } from "@/components/ui/text-link";
import { CommandLine } from "./command-line";
import { ErrorState, StateText } from "./states";

/**
 * The command that makes a machine report here. It asks for the token and writes it into a file that only its owner can
 * read: the token is in no shell history and in no list of processes.
 */
export function addNodeCommand(origin: string): string {
  return [
    "(umask 077 && read -rsp 'Token: ' token && printf '%s\\n' \"$token\" > hugeplan.token)",
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
        Run this on the machine you want to plan. It observes and measures for about a minute. It reserves no
        page and changes no setting; the token lies in a file beside it.
      </StateText>
      <Box w="100%" maw={720}>
        <CommandLine command={addNodeCommand(window.location.origin)} />
      </Box>
      {token ? (
        <Box w="100%" maw={720}>
          <StateText>
            Paste this token when the command asks for it. It is shown only now, and can do nothing but send
            this machine's reports.
          </StateText>
          <CommandLine command={token} what="the token" />
        </Box>
      ) : session?.role === "admin" ? (
        <Group>
          <Button
            variant="default"
            size="sm"
            loading={create.isPending}
            onClick={() => create.mutate({ name: "agent", role: "agent" })}
          >
            Create a token for it
          </Button>
        </Group>
      ) : (
        <StateText>
          The command asks for an agent token. An administrator creates one under{" "}
          <TextLink to="/settings">Settings</TextLink>.
        </StateText>
      )}
      {create.isError && <ErrorState error={create.error} bare />}
    </>
  );
}
