import type { FleetFinding, FleetSummary } from "@/api/types";
import { StateBadge } from "@/components/ui/badges";
import { FindingName } from "@/components/ui/findings";
import { QuestionCard } from "@/components/ui/question-card";
import { StateText } from "@/components/ui/states";
import { TextLink } from "@/components/ui/text-link";
import { Bytes, When } from "@/components/ui/values";
import { formatCounted } from "@/lib/units";
import type { NodeSelection } from "@/search";
import classes from "./overview-page.module.css";

/** Findings that idle pool memory is the price or the remedy of. */
const COSTS_POOL = new Set([
  "pool_idle",
  "plan_drift",
  "silent_fallback",
  "time_bomb",
  "memory_low",
  "surplus_pages",
]);

/** The fleet's findings in the server's order: the worst first, then by the memory that is idle, then by nodes. */
export function ProblemsCard({ fleet, scope }: { fleet: FleetSummary; scope: NodeSelection }) {
  const { findings, updated_at: updatedAt } = fleet;
  return (
    <QuestionCard
      title="Which nodes need attention?"
      description={
        updatedAt && (
          <>
            Last report <When iso={updatedAt} />.
          </>
        )
      }
    >
      {findings.length === 0 ? (
        <StateText>No check found anything in the latest reports. A plan checks a node in full.</StateText>
      ) : (
        <ul className={classes.findings}>
          {findings.map((finding) => (
            <Problem key={`${finding.code}:${finding.state}`} finding={finding} scope={scope} />
          ))}
        </ul>
      )}
    </QuestionCard>
  );
}

function Problem({ finding, scope }: { finding: FleetFinding; scope: NodeSelection }) {
  const { code, state, title, fix, nodes, oldest_since: since, pool_idle_bytes: idle } = finding;
  return (
    <li>
      <span className={classes.state}>
        <StateBadge state={state} />
      </span>
      <div className={classes.what}>
        <strong>{title}</strong>
        {fix && <div className="hp-small">{fix}</div>}
        <div className="hp-dim hp-small">
          <FindingName code={code} />, since <When iso={since} />
          {idle > 0 && COSTS_POOL.has(code) && (
            <>
              , <Bytes value={idle} /> idle in the pools of these nodes
            </>
          )}
        </div>
      </div>
      <div className={classes.where}>
        <TextLink
          to="/nodes"
          search={{ ...scope, finding: code, state, sort: "pool_idle_bytes", down: true }}
        >
          {formatCounted(nodes, "node")}
        </TextLink>
        <TextLink
          to="/planner"
          search={{ node: finding.example_node_id }}
          className="hp-small"
          title={finding.example_node_name}
        >
          Plan {nodes === 1 ? "it" : "the worst"}
        </TextLink>
      </div>
    </li>
  );
}
