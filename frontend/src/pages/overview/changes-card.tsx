import { Anchor, Skeleton } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { recentEventsQuery } from "@/api/fleet";
import { csvPath } from "@/api/nodes";
import { QueryView } from "@/components/ui/query-view";
import { QuestionCard } from "@/components/ui/question-card";
import { StateText } from "@/components/ui/states";
import { TextLink } from "@/components/ui/text-link";
import { When } from "@/components/ui/values";
import { formatCounted } from "@/lib/units";
import type { NodeSelection } from "@/search";
import { type Change, groupChanges } from "./changes";
import classes from "./overview-page.module.css";

const SHOWN = 8;

/** What changed within a day on the nodes that the page counts, newest first; the same change on many is one line. */
export function ChangesCard({ scope }: { scope: NodeSelection }) {
  const query = useQuery(recentEventsQuery(scope));
  return (
    <QuestionCard title="What changed since yesterday?">
      <QueryView query={query} skeleton={<Skeleton height={180} />}>
        {({ items, next_cursor: more }) => {
          const changes = groupChanges(items);
          if (changes.length === 0) return <StateText>Nothing: no finding opened or closed.</StateText>;
          return (
            <>
              <ul className={classes.changes}>
                {changes.slice(0, SHOWN).map((change) => (
                  <Line key={change.key} change={change} />
                ))}
              </ul>
              {(changes.length > SHOWN || more) && (
                <StateText>
                  <Anchor
                    href={csvPath("/api/v1/events/history.csv", { synthetic: scope.synthetic })}
                    download
                    inherit
                  >
                    All changes as CSV
                  </Anchor>
                </StateText>
              )}
            </>
          );
        }}
      </QueryView>
    </QuestionCard>
  );
}

function Line({ change: { text, nodeId, nodeName, count, at } }: { change: Change }) {
  return (
    <li>
      <span>
        {nodeId && nodeName && count === 1 ? (
          <TextLink to="/nodes/$nodeId" params={{ nodeId }} className="hp-anywhere">
            {nodeName}
          </TextLink>
        ) : null}
        {nodeId && count === 1 ? ": " : ""}
        {text}
        {count > 1 && <strong> on {formatCounted(count, "node")}</strong>}
      </span>
      <span className="hp-dim hp-small hp-nowrap">
        <When iso={at} />
      </span>
    </li>
  );
}
