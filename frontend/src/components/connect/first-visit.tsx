import { Group, Stack } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { fleetSummaryQuery } from "@/api/fleet";
import { CommandLine } from "@/components/ui/command-line";
import { LinkButton } from "@/components/ui/link-button";
import { QuestionCard } from "@/components/ui/question-card";
import { KUBECTL_DUMP, SIZE_BY_HAND } from "./connect-commands";
import { ConnectMachine } from "./connect-machine";
import classes from "./first-visit.module.css";

/** While somebody waits, the first report is looked for this often; the stream of changes is quicker where it is open. */
const LOOK_MS = 3_000;

/** A service without a node: three ways to begin. The page around it changes by itself when the first report is there. */
export default function FirstVisit() {
  useQuery({ ...fleetSummaryQuery(), refetchInterval: LOOK_MS });
  return (
    <Stack gap="md">
      <p className={classes.waiting} role="status">
        <span className={classes.mark} aria-hidden="true" />
        Waiting for the first report. This page changes by itself when it arrives.
      </p>
      <QuestionCard
        title="1. With an agent that stays"
        description="It observes the machine each minute and measures it once when it is idle. It needs no root, reserves no page and changes no setting."
      >
        <ConnectMachine />
      </QuestionCard>
      <QuestionCard
        title="2. With a dump of a cluster, without an agent"
        description="Nodes, pods and their limits say which databases run where, and which nodes their huge pages do not fit. The dump stays in your browser and this service; it is not kept."
      >
        <CommandLine command={KUBECTL_DUMP} />
        <Group>
          <LinkButton to="/import" variant="default" size="sm">
            Drop the file here
          </LinkButton>
        </Group>
      </QuestionCard>
      <QuestionCard
        title="3. By hand"
        description="Describe a node and its databases, and plan it. The command line answers the same without a service."
      >
        <CommandLine command={SIZE_BY_HAND} />
        <Group>
          <LinkButton to="/planner" variant="default" size="sm">
            Describe a node
          </LinkButton>
        </Group>
      </QuestionCard>
    </Stack>
  );
}
