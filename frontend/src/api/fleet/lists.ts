import { infiniteQueryOptions, keepPreviousData } from "@tanstack/react-query";
import type { FleetPlanResultSearch, NodeSelection } from "@/search";
import { client, unwrap } from "../client";
import { fleetKeys } from ".";

// Apart from the other queries: the first page needs no list that goes on.
const PAGE = 100;

/** Groups of like nodes, the largest first. */
export function nodeGroupsQuery(selection: NodeSelection) {
  return infiniteQueryOptions({
    queryKey: ["fleet", "groups", selection] as const,
    queryFn: ({ pageParam }) =>
      unwrap(
        client.GET("/api/v1/fleet/groups", {
          params: { query: { ...selection, limit: PAGE, ...(pageParam ? { cursor: pageParam } : {}) } },
        }),
      ),
    initialPageParam: "",
    getNextPageParam: (page) => page.next_cursor,
    placeholderData: keepPreviousData,
  });
}

/** Beneath its group, or the groups: a page is no screen's length. */
const PLAN_ROWS = 20;

/** The nodes of a fleet plan, exceptions first. */
export function fleetPlanNodesQuery(id: string, { severity, group, q }: FleetPlanResultSearch) {
  return infiniteQueryOptions({
    queryKey: [...fleetKeys.plan(id), "nodes", severity, group, q] as const,
    queryFn: ({ pageParam }) =>
      unwrap(
        client.GET("/api/v1/fleet/plans/{job_id}/nodes", {
          params: {
            path: { job_id: id },
            query: {
              limit: PLAN_ROWS,
              ...(severity ? { severity } : {}),
              ...(group === undefined ? {} : { group_number: group }),
              ...(q ? { q } : {}),
              ...(pageParam ? { cursor: pageParam } : {}),
            },
          },
        }),
      ),
    initialPageParam: "",
    getNextPageParam: (page) => page.next_cursor,
    placeholderData: keepPreviousData,
  });
}

/** The groups of a fleet plan: nodes that get the same pools, the largest group first. */
export function fleetPlanGroupsQuery(id: string) {
  return infiniteQueryOptions({
    queryKey: [...fleetKeys.plan(id), "groups"] as const,
    queryFn: ({ pageParam }) =>
      unwrap(
        client.GET("/api/v1/fleet/plans/{job_id}/groups", {
          params: {
            path: { job_id: id },
            query: { limit: PLAN_ROWS, ...(pageParam ? { cursor: pageParam } : {}) },
          },
        }),
      ),
    initialPageParam: "",
    getNextPageParam: (page) => page.next_cursor,
  });
}
