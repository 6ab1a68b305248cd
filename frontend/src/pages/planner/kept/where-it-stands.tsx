import { useQuery } from "@tanstack/react-query";
import { planInputsQuery } from "@/api/plans";
import type { PlanOnNode, SavedPlan } from "@/api/types";
import { planStateLook } from "@/components/plans/plan-state-badge";
import { StateBadge } from "@/components/ui/badges";
import { CommandLine } from "@/components/ui/command-line";
import { Disclosure } from "@/components/ui/disclosure";
import { LinkButton } from "@/components/ui/link-button";
import { QuestionCard } from "@/components/ui/question-card";
import { Table } from "@/components/ui/table";
import { TextLink } from "@/components/ui/text-link";
import { When } from "@/components/ui/values";
import { fromScenario } from "../draft/planner-form";
import { toFragment } from "../live/address";
import classes from "./kept-plan.module.css";

/** Who decided what, what the node's reports say of it, and what changed since. */
export function WhereItStands({ kept }: { kept: SavedPlan }) {
  return (
    <QuestionCard title={sentence(kept)}>
      <ol className={classes.steps} aria-label="What was decided">
        <Step done what="Kept" by={kept.author} at={kept.created_at} />
        <Step done={kept.proposed_at !== null} what="Proposed" by={kept.proposed_by} at={kept.proposed_at} />
        <Step done={kept.approved_at !== null} what="Approved" by={kept.approved_by} at={kept.approved_at} />
        <Step
          done={kept.in_force.length > 0}
          what="Put in force"
          by={kept.in_force[0]?.by ?? null}
          at={kept.in_force[0]?.since ?? null}
        />
        <Verified kept={kept} />
      </ol>
      {isStale(kept) && <Stale kept={kept} />}
      {kept.in_force.map((node) => (
        <OnNode key={node.node_id} node={node} />
      ))}
      {kept.state === "in_force" && kept.approval_ended_at && (
        <p className={classes.line}>
          Its approval ended <When iso={kept.approval_ended_at} />.
        </p>
      )}
      {kept.superseded_by && (
        <p className={classes.line}>
          Another plan took its place:{" "}
          <TextLink to="/plans/$planId" params={{ planId: kept.superseded_by }}>
            open it
          </TextLink>
          .
        </p>
      )}
      {(kept.state === "approved" || kept.state === "in_force") && <OnTheNode kept={kept} />}
    </QuestionCard>
  );
}

type Standing = Pick<SavedPlan, "state" | "stale" | "in_force" | "node_id" | "sampled_at">;

/** Whether a newer sample changed what the plan decided; of no interest once another plan took its place. */
function isStale({ stale, state, node_id: node }: Standing): boolean {
  return (stale?.length ?? 0) > 0 && state !== "superseded" && node !== null;
}

/** Where the plan stands and what is next. */
export function sentence(kept: Standing): string {
  if (isStale(kept) && kept.state !== "in_force")
    return "The node has changed since this plan was computed: plan it again.";
  if (kept.node_id === null && kept.sampled_at !== null && kept.state !== "superseded")
    return "Its node was removed: no node of this service can follow it.";
  switch (kept.state) {
    case "draft":
      return "A draft: propose it, and it can be approved.";
    case "proposed":
      return "It waits for an approver.";
    case "approved":
      return kept.node_id === null
        ? "Approved. No node of this service can follow it: it was made without one."
        : "Approved: put it in force, and install its files.";
    case "superseded":
      return "A later plan took its place.";
    case "in_force": {
      const { text } = planStateLook(kept);
      return kept.in_force.every(({ answer }) => answer === "yes")
        ? "The node's newest report says that the plan is in force."
        : `The node is meant to follow it. ${text}.`;
    }
  }
}

function Step({ done, what, by, at }: { done: boolean; what: string; by: string | null; at: string | null }) {
  return (
    <li data-done={done}>
      <strong>{what}</strong>
      {done ? (
        <span>
          {by ? `by ${by}, ` : ""}
          <When iso={at} />
        </span>
      ) : (
        <span>not yet</span>
      )}
    </li>
  );
}

/** The last step is the node's: done when its newest report says so. */
function Verified({ kept: { in_force: nodes } }: { kept: SavedPlan }) {
  const isDone = nodes.length > 0 && nodes.every(({ answer }) => answer === "yes");
  return (
    <li data-done={isDone}>
      <strong>Verified in force</strong>
      {isDone ? (
        <span>
          by the node's report, <When iso={nodes[0]?.verified_at ?? null} />
        </span>
      ) : (
        <span>not yet</span>
      )}
    </li>
  );
}

function Stale({ kept }: { kept: SavedPlan }) {
  return (
    <>
      <Table verticalSpacing={4} aria-label="What changed since" stacks>
        <Table.Thead>
          <Table.Tr>
            <Table.Th>What changed</Table.Th>
            <Table.Th>When planned</Table.Th>
            <Table.Th>Now</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {kept.stale?.map(({ what, was, now }) => (
            <Table.Tr key={what}>
              <Table.Th scope="row">{what}</Table.Th>
              <Table.Td label="When planned">{was}</Table.Td>
              <Table.Td label="Now">{now}</Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
      {kept.node_id && <PlanAgain kept={kept} nodeId={kept.node_id} />}
    </>
  );
}

/** The same scenario on the node as it is now: the saved one, else as it stood in the form. */
function PlanAgain({ kept, nodeId }: { kept: SavedPlan; nodeId: string }) {
  const { data } = useQuery({ ...planInputsQuery(kept.id), enabled: kept.scenario_id === null });
  const address = data?.scenario ? { hash: toFragment({ form: fromScenario(data.scenario).form }) } : {};
  return (
    <LinkButton
      className="hp-start"
      to="/planner"
      search={kept.scenario_id ? { saved: kept.scenario_id } : { node: nodeId }}
      {...address}
    >
      Plan it again
    </LinkButton>
  );
}

const LOOKS = { yes: "ok", partly: "attention", no: "attention", unknown: "unknown" } as const;
const WORDS = { yes: "Yes", partly: "Partly", no: "Not yet", unknown: "No report yet" };

function OnNode({ node }: { node: PlanOnNode }) {
  return (
    <div className={classes.onNode}>
      <StateBadge state={LOOKS[node.answer]} text={WORDS[node.answer]} />
      <div>
        <p className={classes.line}>
          {node.answer === "yes" ? "In force on" : "Meant for"}{" "}
          <TextLink to="/nodes/$nodeId" params={{ nodeId: node.node_id }}>
            {node.node_name}
          </TextLink>
          {node.verified_at ? (
            <>
              , as of the report <When iso={node.verified_at} />
            </>
          ) : (
            ": its next report will say"
          )}
          .
        </p>
        {node.wrong.map((text) => (
          <p key={text} className={classes.line}>
            {text}
          </p>
        ))}
      </div>
    </div>
  );
}

/** The two commands for the node; both name the digest. */
function OnTheNode({ kept }: { kept: SavedPlan }) {
  const file = `plan-${kept.short_digest ?? kept.id}.json`;
  return (
    <Disclosure label="On the node, with the JSON of this plan">
      <CommandLine command={`hugeplan apply ${file}`} />
      <CommandLine command={`hugeplan verify ${file}`} />
    </Disclosure>
  );
}
