import { Button } from "@mantine/core";
import { useInfiniteQuery } from "@tanstack/react-query";
import { useState } from "react";
import { fleetPlanGroupsQuery } from "@/api/fleet/lists";
import type { FleetPlanGroup } from "@/api/types";
import { QuestionCard } from "@/components/ui/question-card";
import { CardSkeleton } from "@/components/ui/skeletons";
import { ErrorState } from "@/components/ui/states";
import { formatCount, formatShare } from "@/lib/units";
import type { FleetPlanResultSearch } from "@/search";
import classes from "./fleet-plan.module.css";
import { formatPoolList } from "./fleet-plan-words";

/** Bars at first, and with each wish for more: the exceptions below must not be pages away. */
const BARS = 10;

interface GroupsCardProps {
  jobId: string;
  nodes: number;
  chosen: number | undefined;
  onChoose: (change: Partial<FleetPlanResultSearch>) => void;
}

/** How many nodes get which pools, the most nodes first; a bar is a button that shows its nodes. */
export function GroupsCard({ jobId, nodes, chosen, onChoose }: GroupsCardProps) {
  const query = useInfiniteQuery(fleetPlanGroupsQuery(jobId));
  const [shown, setShown] = useState(BARS);
  const groups = query.data?.pages.flatMap(({ items }) => items);
  if (!groups)
    return query.isError ? (
      <ErrorState error={query.error} onRetry={() => void query.refetch()} />
    ) : (
      <CardSkeleton height={160} />
    );
  const most = Math.max(1, ...groups.map((group) => group.nodes));
  return (
    <QuestionCard
      title="How many nodes get which pools?"
      description="Nodes that get the same pools are one line. A line shows its nodes below."
    >
      <ul className={classes.histogram}>
        {groups.slice(0, shown).map((group) => (
          <Bar
            key={group.number}
            group={group}
            share={group.nodes / most}
            nodes={nodes}
            isChosen={group.number === chosen}
            onClick={() => onChoose({ group: group.number === chosen ? undefined : group.number })}
          />
        ))}
      </ul>
      {(shown < groups.length || query.hasNextPage) && (
        <Button
          variant="default"
          className="hp-start"
          onClick={() => {
            setShown(shown + 5 * BARS);
            if (shown + 5 * BARS > groups.length && query.hasNextPage) void query.fetchNextPage();
          }}
          loading={query.isFetchingNextPage}
        >
          Show more
        </Button>
      )}
      {query.isFetchNextPageError && <ErrorState error={query.error} bare />}
    </QuestionCard>
  );
}

interface BarProps {
  group: FleetPlanGroup;
  share: number;
  nodes: number;
  isChosen: boolean;
  onClick: () => void;
}

function Bar({ group, share, nodes, isChosen, onClick }: BarProps) {
  return (
    <li>
      <button type="button" className={classes.bar} aria-pressed={isChosen} onClick={onClick}>
        <span className={classes.pools}>
          {formatPoolList(group.pools)}
          <span className="hp-dim hp-small"> {group.machine_type}</span>
        </span>
        <span className={classes.track} aria-hidden="true">
          <span className={classes.fill} style={{ width: `${100 * share}%` }} />
        </span>
        <span className="hp-num">
          {formatCount(group.nodes)} {group.nodes === 1 ? "node" : "nodes"}
          <span className="hp-dim hp-small"> {formatShare(group.nodes / nodes)}</span>
        </span>
      </button>
    </li>
  );
}
