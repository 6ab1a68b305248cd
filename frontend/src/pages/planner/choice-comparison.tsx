import { Table } from "@mantine/core";
import type { Choice, InstancePlan } from "@/api/types";
import { PageSizeBadge } from "@/components/ui/badges";
import { TableScroll } from "@/components/ui/table-scroll";
import { formatCount } from "@/lib/units";
import { choicePoints, formatPoints } from "./choice-points";
import classes from "./instances-card.module.css";

/** The size that was chosen beside its runner-up, in the points that decided. */
export function ChoiceComparison({ instance }: { instance: InstancePlan }) {
  const { chosen, runner_up: runnerUp } = instance;
  if (!chosen || (!runnerUp && choicePoints(chosen.why) === null)) return null;
  return (
    <TableScroll label={`Choice of the page size for ${instance.name}`} minWidth={440}>
      <Table verticalSpacing={5}>
        <Table.Thead>
          <Table.Tr>
            <Table.Th>Candidate</Table.Th>
            <Table.Th className="hp-num">Gain</Table.Th>
            <Table.Th className="hp-num">Memory</Table.Th>
            <Table.Th className="hp-num">Operation</Table.Th>
            <Table.Th className="hp-num">Points in all</Table.Th>
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
  const points = choicePoints(choice.why);
  return (
    <Table.Tr>
      <Table.Th scope="row" fw={400}>
        <div className={classes.candidate}>
          <PageSizeBadge pageBytes={choice.page_bytes} kind={choice.pages > 0 ? "hugetlb" : "base"} />
          <span style={{ fontWeight: verdict === "chosen" ? 600 : 400 }}>{verdict}</span>
        </div>
        {points && (
          <div className={classes.dim}>
            {formatCount(choice.pages)} {choice.pages === 1 ? "page" : "pages"}, {points.waste} lost to
            rounding
          </div>
        )}
      </Table.Th>
      {points ? (
        <>
          <Table.Td className="hp-num">{formatPoints(points.gain)}</Table.Td>
          <Table.Td className="hp-num">{formatPoints(points.memory)}</Table.Td>
          <Table.Td className="hp-num">{formatPoints(points.operation)}</Table.Td>
        </>
      ) : (
        <Table.Td colSpan={3} className={classes.dim}>
          {choice.why}
        </Table.Td>
      )}
      <Table.Td className="hp-num">{choice.feasible ? formatPoints(choice.score) : "cannot be had"}</Table.Td>
    </Table.Tr>
  );
}
