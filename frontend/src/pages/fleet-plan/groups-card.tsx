import { Button } from "@mantine/core";
import { useInfiniteQuery } from "@tanstack/react-query";
import { fleetPlanGroupsQuery } from "@/api/fleet/lists";
import type { FleetPlanGroup } from "@/api/types";
import { verdictLook } from "@/components/plans/verdicts";
import { PageSizeBadge, StateBadge } from "@/components/ui/badges";
import { DenseValues } from "@/components/ui/hint";
import { MoreRows } from "@/components/ui/more-rows";
import { QuestionCard } from "@/components/ui/question-card";
import { CardSkeleton } from "@/components/ui/skeletons";
import { ErrorState, StateText } from "@/components/ui/states";
import { Table } from "@/components/ui/table";
import { TableScroll } from "@/components/ui/table-scroll";
import { Term } from "@/components/ui/term";
import { Bytes, Unknown } from "@/components/ui/values";
import { shortMachineType } from "@/lib/machine-type";
import { formatChance, formatCount } from "@/lib/units";
import type { FleetPlanResultSearch } from "@/search";
import { Decisions } from "./decisions-card";
import classes from "./fleet-plan.module.css";
import { answerOf, changesPools } from "./fleet-plan-words";
import { PlanNodes } from "./plan-nodes";

const COLUMNS = 7;

interface GroupsCardProps {
  jobId: string;
  /** The group whose nodes are shown; the address holds it. */
  open: number | undefined;
  onOpen: (change: Partial<FleetPlanResultSearch>) => void;
}

/** One row per group of nodes that are alike and change alike; a row opens to its decisions, files and nodes. */
export function GroupsCard({ jobId, open, onOpen }: GroupsCardProps) {
  const query = useInfiniteQuery(fleetPlanGroupsQuery(jobId));
  const groups = query.data?.pages.flatMap(({ items }) => items);
  if (!groups)
    return query.isError ? (
      <ErrorState error={query.error} onRetry={() => void query.refetch()} />
    ) : (
      <CardSkeleton height={160} />
    );
  return (
    <QuestionCard
      title="What changes on which nodes?"
      description="Nodes of one machine type with the same pools now and as planned are one row. A row opens to its nodes and decisions."
    >
      {groups.length === 0 ? (
        <StateText>No node could be planned; the reasons are below.</StateText>
      ) : (
        <TableScroll label="Groups of the plan" minWidth={0}>
          <DenseValues>
            <Table verticalSpacing={7} stacks>
              <Table.Thead>
                <Table.Tr>
                  <Table.Th>Nodes</Table.Th>
                  <Table.Th className="hp-num">
                    <Term name="huge-page-pool">Pages each, now and planned</Term>
                  </Table.Th>
                  <Table.Th className="hp-num">Given back each</Table.Th>
                  <Table.Th>Verdict</Table.Th>
                  <Table.Th className="hp-num">
                    <Term name="risk">Risk</Term>
                  </Table.Th>
                  <Table.Th>Why</Table.Th>
                  <Table.Th className="hp-num">Files</Table.Th>
                </Table.Tr>
              </Table.Thead>
              <Table.Tbody>
                {groups.map((group) => (
                  <Group
                    key={group.number}
                    jobId={jobId}
                    group={group}
                    isOpen={open === group.number}
                    onToggle={() => onOpen({ group: open === group.number ? undefined : group.number })}
                  />
                ))}
              </Table.Tbody>
            </Table>
          </DenseValues>
        </TableScroll>
      )}
      <MoreRows query={query} what="groups" />
    </QuestionCard>
  );
}

interface GroupProps {
  jobId: string;
  group: FleetPlanGroup;
  isOpen: boolean;
  onToggle: () => void;
}

function Group({ jobId, group, isOpen, onToggle }: GroupProps) {
  const { figures } = group;
  const id = `group-${group.number}`;
  return (
    <>
      <Table.Tr className="hp-top">
        <Table.Th scope="row" fw={400}>
          <button
            type="button"
            className={classes.group}
            aria-expanded={isOpen}
            aria-controls={isOpen ? id : undefined}
            onClick={onToggle}
          >
            <strong>{formatCount(group.nodes)} ×</strong> {shortMachineType(group.machine_type)}
          </button>
        </Table.Th>
        <Table.Td className="hp-num" label="Pages each, now and planned" isText>
          <Sizes group={group} />
        </Table.Td>
        <Table.Td className="hp-num" label="Given back each">
          <Returned bytes={figures?.returned_bytes} />
        </Table.Td>
        <Table.Td label="Verdict" isText>
          <Answers group={group} />
        </Table.Td>
        <Table.Td className="hp-num" label="Risk">
          <Risk figures={figures} nodes={group.nodes} />
        </Table.Td>
        <Table.Td className="hp-small" label="Why" isText>
          {figures?.reason ?? <span className="hp-dim">nothing to look at</span>}
        </Table.Td>
        <Table.Td className="hp-num" label="Files">
          {changesPools(group) ? (
            <Button
              component="a"
              href={`/api/v1/fleet/plans/${jobId}/groups/${group.number}/files.zip`}
              download
              size="compact-sm"
              variant="default"
              aria-label={`zip of the files of ${formatCount(group.nodes)} × ${shortMachineType(group.machine_type)}`}
            >
              zip
            </Button>
          ) : (
            <span className="hp-dim">none</span>
          )}
        </Table.Td>
      </Table.Tr>
      {isOpen && (
        <Table.Tr id={id}>
          <Table.Td colSpan={COLUMNS} className={classes.inside}>
            <Decisions jobId={jobId} nodes={group.nodes} group={group.number} />
            <PlanNodes jobId={jobId} search={{ group: group.number }} />
          </Table.Td>
        </Table.Tr>
      )}
    </>
  );
}

/** "2M 16,876 → 10,604", one line per page size. */
function Sizes({ group: { figures } }: { group: FleetPlanGroup }) {
  if (!figures) return <Unknown why="The plan was made by an earlier version." />;
  if (figures.sizes.length === 0) return <span className="hp-dim">no pool</span>;
  return figures.sizes.map(({ page_bytes: size, present_pages: now, planned_pages: planned }) => (
    <div key={size} className="hp-nowrap">
      <PageSizeBadge pageBytes={size} kind="hugetlb" />{" "}
      {now === planned ? (
        formatCount(planned)
      ) : (
        <>
          {now === null ? <Unknown why="The nodes did not report this pool." /> : formatCount(now)} →{" "}
          <strong>{formatCount(planned)}</strong>
        </>
      )}
    </div>
  ));
}

function Returned({ bytes }: { bytes: number | null | undefined }) {
  if (bytes === null || bytes === undefined) return <Unknown why="The pools of today are not known." />;
  if (bytes === 0) return <span className="hp-dim">no change</span>;
  if (bytes > 0) return <Bytes value={bytes} />;
  return (
    <>
      takes <Bytes value={-bytes} />
    </>
  );
}

/** The verdict that most nodes of the group have, and how many have another. */
function Answers({ group }: { group: FleetPlanGroup }) {
  const { figures } = group;
  const found = answerOf(figures?.answers ?? {});
  if (!figures || !found) return <Unknown />;
  const changes = figures.sizes.map(({ present_pages: now, planned_pages: planned }) => ({ now, planned }));
  const isRisky = (figures.risk_high ?? 0) > (figures.risk_policy ?? 1);
  return (
    <>
      <StateBadge {...verdictLook(found.answer, changes, figures.nodes_not_fitting === 0 && !isRisky)} />
      {found.others > 0 && <div className="hp-small hp-dim">{formatCount(found.others)} differ</div>}
    </>
  );
}

function Risk({ figures, nodes }: { figures: FleetPlanGroup["figures"]; nodes: number }) {
  if (!figures || figures.risk_high === null)
    return (
      <Unknown why="It may be within the policy or above it: too little of these nodes' history is known." />
    );
  return (
    <>
      ≤ {formatChance(figures.risk_high)}
      {figures.risk_unknown > 0 && (
        <div className="hp-small hp-dim">
          {formatCount(figures.risk_unknown)} of {formatCount(nodes)} unknown
        </div>
      )}
    </>
  );
}
