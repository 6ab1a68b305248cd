import { Text } from "@mantine/core";
import type { Choice, InstancePlan } from "@/api/types";
import { PageSizeBadge } from "@/components/ui/badges";
import { Table } from "@/components/ui/table";
import { TableScroll } from "@/components/ui/table-scroll";
import { Term } from "@/components/ui/term";
import { formatBytes, formatCount, formatScore } from "@/lib/units";
import classes from "./instances-card.module.css";

/** The size that was chosen beside its runner-up, in the score that decided. */
export function ChoiceComparison({ instance }: { instance: InstancePlan }) {
  const { chosen, runner_up: runnerUp } = instance;
  if (!chosen || (!runnerUp && chosen.gain_score === null)) return null;
  return (
    <TableScroll label={`Choice of the page size for ${instance.name}`} minWidth={440}>
      <Table verticalSpacing={5}>
        <Table.Thead>
          <Table.Tr>
            <Table.Th>Candidate</Table.Th>
            <Table.Th className="hp-num">
              <Term name="gain">Gain</Term>
            </Table.Th>
            <Table.Th className="hp-num">Memory</Table.Th>
            <Table.Th className="hp-num">
              <Term name="operational-cost">Operational cost</Term>
            </Table.Th>
            <Table.Th className="hp-num">
              <Term name="score">Score</Term>
            </Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          <Candidate choice={chosen} verdict="chosen" />
          {runnerUp && <Candidate choice={runnerUp} verdict="runner-up" />}
        </Table.Tbody>
      </Table>
    </TableScroll>
  );
}

function Candidate({ choice, verdict }: { choice: Choice; verdict: "chosen" | "runner-up" }) {
  const { gain_score: gain, memory_score: memory, operation_score: operation, waste_bytes: waste } = choice;
  const hasPoints = gain !== null && memory !== null && operation !== null;
  return (
    <Table.Tr>
      <Table.Th scope="row" fw={400}>
        <div className={classes.candidate}>
          <PageSizeBadge pageBytes={choice.page_bytes} kind={choice.pages > 0 ? "hugetlb" : "base"} />
          <Text span inherit fw={verdict === "chosen" ? 600 : 400}>
            {verdict}
          </Text>
        </div>
        {waste !== null && (
          <div className={classes.dim}>
            {formatCount(choice.pages)} {choice.pages === 1 ? "page" : "pages"}, {formatBytes(waste)} lost to
            rounding
          </div>
        )}
      </Table.Th>
      {hasPoints ? (
        <>
          <Table.Td className="hp-num">{formatScore(gain)}</Table.Td>
          <Table.Td className="hp-num">{formatScore(memory)}</Table.Td>
          <Table.Td className="hp-num">{formatScore(operation)}</Table.Td>
        </>
      ) : (
        <Table.Td colSpan={3} className={classes.dim}>
          {choice.why}
        </Table.Td>
      )}
      <Table.Td className="hp-num">{choice.feasible ? formatScore(choice.score) : "not available"}</Table.Td>
    </Table.Tr>
  );
}
