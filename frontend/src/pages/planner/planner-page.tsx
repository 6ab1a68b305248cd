import "@/theme/mantine-pages.css";
import { useQuery } from "@tanstack/react-query";
import { useRouter, useSearch } from "@tanstack/react-router";
import { useState } from "react";
import { enginesQuery } from "@/api/engines";
import { nodeScenarioQuery } from "@/api/nodes";
import { scenarioQuery } from "@/api/scenarios";
import { LinkButton } from "@/components/ui/link-button";
import { PageSkeleton } from "@/components/ui/skeletons";
import { ErrorState, isMissing, NotThere } from "@/components/ui/states";
import { formInFragment } from "./live/use-address";
import { Planner } from "./planner";

/** Databases and other workloads in, a plan out. Waits for what the form starts from, then hands over. */
export function PlannerPage() {
  const search = useSearch({ from: "/app/planner" });
  const router = useRouter();
  const engines = useQuery(enginesQuery());
  const scenario = useQuery({ ...scenarioQuery(search.saved ?? ""), enabled: search.saved !== undefined });
  // A node that is opened for planning brings its databases as they run; what stands in the address goes first.
  const [startNode] = useState(() =>
    search.saved === undefined &&
    search.form === undefined &&
    formInFragment(router.latestLocation.hash) === undefined
      ? search.node
      : undefined,
  );
  const running = useQuery({ ...nodeScenarioQuery(startNode ?? ""), enabled: startNode !== undefined });
  if (isMissing(running.error) || isMissing(scenario.error))
    return (
      <NotThere title={isMissing(running.error) ? "No such node" : "No such scenario"}>
        <LinkButton to="/planner">Describe a node here</LinkButton>
        <LinkButton to="/nodes">All nodes</LinkButton>
      </NotThere>
    );
  const failed = [engines, scenario, running].find((query) => query.isError && query.data === undefined);
  if (failed) return <ErrorState error={failed.error} onRetry={() => void failed.refetch()} />;
  if (!engines.data || (search.saved !== undefined && !scenario.data)) return <PageSkeleton />;
  if (startNode !== undefined && running.isPending) return <PageSkeleton />;
  return (
    <Planner
      // Another scenario is another form; another version of the same one is not, or edits would be lost.
      key={search.saved ?? "new"}
      engines={engines.data.items}
      stored={search.saved !== undefined ? (scenario.data ?? null) : null}
      running={running.data ?? null}
    />
  );
}
