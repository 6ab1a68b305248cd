import { Button } from "@mantine/core";
import { type ReactNode, useState } from "react";
import type { KubernetesImport } from "@/api/types";
import { StateBadge } from "@/components/ui/badges";
import { Disclosure } from "@/components/ui/disclosure";
import { QuestionCard } from "@/components/ui/question-card";
import { StateText } from "@/components/ui/states";
import { Table } from "@/components/ui/table";
import { TableScroll } from "@/components/ui/table-scroll";
import { TextLink } from "@/components/ui/text-link";
import { Bytes } from "@/components/ui/values";
import { formatCount } from "@/lib/units";
import { clusterTitle, type FoundNode, nodesOf, verdictOf, worstOf } from "./cluster-words";
import { CommandText } from "./command-text";
import classes from "./import.module.css";

/** Rows at first, and with each wish for more. */
const ROWS = 20;

/** The nodes of a dump, those that do not fit first, with the text of the command line behind a line. */
export function ClusterCard({ found, keep }: { found: KubernetesImport; keep: ReactNode }) {
  const [shown, setShown] = useState(ROWS);
  const nodes = nodesOf(found.answer);
  return (
    <QuestionCard title={clusterTitle(nodes)} description={found.text.split("\n", 1)[0]} actions={keep}>
      {found.scenarios.length > 0 && (
        <StateText>
          {formatCount(found.scenarios.length)}{" "}
          {found.scenarios.length === 1 ? "scenario is" : "scenarios are"} kept:{" "}
          {found.scenarios.slice(0, 3).map(({ id, name }, index) => (
            <span key={id}>
              {index > 0 && ", "}
              <TextLink to="/planner" search={{ saved: id }}>
                {name}
              </TextLink>
            </span>
          ))}
          {found.scenarios.length > 3 && " and more in the planner"}.
        </StateText>
      )}
      {found.refused.length > 0 && (
        <StateText>
          {formatCount(found.refused.length)} not kept:{" "}
          {found.refused
            .slice(0, 3)
            .map(({ name, reason }) => `${name} (${reason})`)
            .join("; ")}
          {found.refused.length > 3 && " and more"}
        </StateText>
      )}
      <TableScroll label="Nodes of the dump" minWidth={0}>
        <Table verticalSpacing={6} stacks>
          <Table.Thead>
            <Table.Tr>
              <Table.Th w="20%">Node</Table.Th>
              <Table.Th>Verdict</Table.Th>
              <Table.Th className="hp-num">Memory</Table.Th>
              <Table.Th className="hp-num">Databases</Table.Th>
              <Table.Th w="45%">What</Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {nodes.slice(0, shown).map((node) => (
              <Row key={node.name} node={node} />
            ))}
          </Table.Tbody>
        </Table>
      </TableScroll>
      {nodes.length > shown && (
        <Button variant="default" className="hp-start" onClick={() => setShown(shown + 5 * ROWS)}>
          Show more nodes
        </Button>
      )}
      <Disclosure label="As hugeplan plan prints it">
        <CommandText text={found.text} />
      </Disclosure>
    </QuestionCard>
  );
}

function Row({ node }: { node: FoundNode }) {
  const plan = node.shortfall?.reason ?? node.not_planned_because ?? node.headline;
  const said = [plan, worstOf(node)].filter((text) => text !== null);
  return (
    <Table.Tr className="hp-top">
      <Table.Th scope="row" className="hp-anywhere">
        {node.name}
      </Table.Th>
      <Table.Td label="Verdict">
        <span className={classes.badges}>
          {verdictOf(node).map((badge) => (
            <StateBadge key={badge.text} {...badge} />
          ))}
        </span>
      </Table.Td>
      <Table.Td className="hp-num" label="Memory">
        <Bytes value={node.mem_total_bytes} />
      </Table.Td>
      <Table.Td className="hp-num" label="Databases">
        {formatCount(node.databases.length)}
      </Table.Td>
      <Table.Td className="hp-small" label="What" isText>
        {said.map((text) => (
          <p key={text} className={classes.said}>
            {text}
          </p>
        ))}
      </Table.Td>
    </Table.Tr>
  );
}
