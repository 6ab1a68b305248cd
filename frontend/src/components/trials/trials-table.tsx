import type { FleetTrial, Trial } from "@/api/types";
import { StateBadge } from "@/components/ui/badges";
import { Table } from "@/components/ui/table";
import { TableScroll } from "@/components/ui/table-scroll";
import { TextLink } from "@/components/ui/text-link";
import { Unknown, When } from "@/components/ui/values";
import { formatPercentChange, formatShare } from "@/lib/units";
import { shapeText, trialRows } from "./trial-rows";

/** Trials by page size: what each gained, the noise of equal pages, and why a figure is missing. */
export function TrialsTable({ trials }: { trials: readonly (Trial | FleetTrial)[] }) {
  const isFleet = trials.some((trial) => "node_name" in trial);
  return (
    <TableScroll label="Trials" minWidth={860}>
      <Table verticalSpacing={6}>
        <Table.Thead>
          <Table.Tr>
            <Table.Th>Measured</Table.Th>
            {isFleet && <Table.Th>Node</Table.Th>}
            <Table.Th>With</Table.Th>
            <Table.Th>Pages</Table.Th>
            <Table.Th>Against base pages</Table.Th>
            <Table.Th>Predicted</Table.Th>
            <Table.Th>Noise: equal pages</Table.Th>
            <Table.Th className="hp-num">Other work</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {trials.flatMap((trial) =>
            trialRows(trial).map((row) => (
              <Table.Tr key={`${trial.node_id}:${trial.id}:${row.pages}`}>
                <Table.Td>
                  <When iso={trial.started_at} />
                </Table.Td>
                {isFleet && (
                  <Table.Td>
                    {"node_name" in trial && (
                      <TextLink
                        to="/nodes/$nodeId"
                        params={{ nodeId: trial.node_id }}
                        search={{ tab: "trials" }}
                      >
                        {trial.node_name}
                      </TextLink>
                    )}
                  </Table.Td>
                )}
                <Table.Td>
                  {trial.engine} {trial.version}
                  <div className="hp-dim hp-small">{shapeText(trial.shape)}</div>
                </Table.Td>
                <Table.Td>{row.pages}</Table.Td>
                <Table.Td>
                  {row.gain ?? <Unknown why={row.why} />}
                  {row.isAnswer ? null : (
                    <div className="hp-small">
                      <StateBadge state="unknown" text={row.why ?? "No answer"} />
                    </div>
                  )}
                </Table.Td>
                <Table.Td>
                  {row.predicted ?? <Unknown why="Nothing was measured of this node's page walks before." />}
                  {row.isInside !== null && (
                    <div className="hp-small">
                      <StateBadge
                        state={row.isInside ? "ok" : "attention"}
                        text={row.isInside ? "Inside" : "Outside"}
                      />
                    </div>
                  )}
                </Table.Td>
                <Table.Td>
                  {row.noise ?? <Unknown why="Equal pages were not compared often enough." />}
                </Table.Td>
                <Table.Td className="hp-num">
                  {trial.others_share === null ? (
                    <Unknown why="What else ran was not seen." />
                  ) : (
                    formatShare(trial.others_share)
                  )}
                </Table.Td>
              </Table.Tr>
            )),
          )}
        </Table.Tbody>
      </Table>
    </TableScroll>
  );
}

/** The newest answer as the title of a card. */
export function trialsTitle(trials: readonly Trial[]): string {
  for (const trial of trials)
    for (const size of trial.page_sizes)
      if (size.page_size !== "equal" && size.text && size.gain)
        return `${size.page_size === "thp" ? "THP" : `${size.page_size} pages`} gained ${formatPercentChange(size.gain.likely / 100)} with ${trial.engine}, measured.`;
  return trials.length === 0 ? "Nothing was tried yet." : "No trial gave an answer yet.";
}
