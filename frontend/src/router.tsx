import type { QueryClient } from "@tanstack/react-query";
import {
  createRootRouteWithContext,
  createRoute,
  createRouter,
  isRedirect,
  lazyRouteComponent,
  Outlet,
  redirect,
} from "@tanstack/react-router";
import { enginesQuery } from "./api/engines";
import { fleetPlanQuery, fleetPlansQuery, fleetSummaryQuery } from "./api/fleet";
import { loadPage } from "./api/load-part";
import { nodeListQuery, nodeQuery, nodeScenarioQuery, selectedNodesQuery } from "./api/nodes";
import { plansQuery, savedPlanQuery } from "./api/plans";
import { asApiError } from "./api/problem";
import { scenarioQuery } from "./api/scenarios";
import { sessionQuery } from "./api/session";
import { AppError, AppLayout, AppNotFound } from "./components/shell/app-layout";
import { PageError } from "./components/shell/page-error";
import { takeRemembered } from "./lib/after-login";
import { OverviewPage } from "./pages/overview/overview-page";
import {
  compareSearch,
  fleetPlanResultSearch,
  fleetPlanSearch,
  loginSearch,
  nodeSearch,
  nodesSearch,
  overviewSearch,
  plannerSearch,
  plansSearch,
} from "./search";

interface RouterContext {
  queryClient: QueryClient;
}

const rootRoute = createRootRouteWithContext<RouterContext>()({ component: Outlet });

const loginRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/login",
  validateSearch: loginSearch,
  component: lazyRouteComponent(() => loadPage(() => import("./pages/login/login-page")), "LoginPage"),
});

/** Everything behind the login: nothing is shown before the session is known. */
const appRoute = createRoute({
  getParentRoute: () => rootRoute,
  id: "app",
  component: AppLayout,
  errorComponent: AppError,
  beforeLoad: async ({ context, location }) => {
    try {
      await context.queryClient.ensureQueryData(sessionQuery());
      const href = takeRemembered();
      if (href) throw redirect({ href, replace: true });
    } catch (error) {
      if (isRedirect(error)) throw error;
      if (asApiError(error).isUnauthorized) {
        // The fragment holds a draft with names: it stays a fragment, which no log sees.
        const { pathname, searchStr, hash } = location;
        throw redirect({ to: "/login", search: { next: pathname + searchStr }, hash });
      }
      throw error;
    }
  },
});

const overviewRoute = createRoute({
  getParentRoute: () => appRoute,
  path: "/",
  validateSearch: overviewSearch,
  loader: ({ context: { queryClient } }) => void queryClient.prefetchQuery(fleetSummaryQuery()),
  // With the entry: the first page is not a second round of requests, and the other pages use most of its parts.
  component: OverviewPage,
});

const nodesRoute = createRoute({
  getParentRoute: () => appRoute,
  path: "/nodes",
  validateSearch: nodesSearch,
  loaderDeps: ({ search }) => search,
  // Not awaited, here and below: the page shows its skeleton, and an error in its own place.
  loader: ({ context: { queryClient }, deps }) => {
    void queryClient.prefetchQuery(fleetSummaryQuery());
    if (deps.view !== "groups")
      void queryClient.prefetchInfiniteQuery(selectedNodesQuery(nodeListQuery(deps)));
  },
  component: lazyRouteComponent(() => loadPage(() => import("./pages/nodes/nodes-page")), "NodesPage"),
});

const nodeRoute = createRoute({
  getParentRoute: () => appRoute,
  path: "/nodes/$nodeId",
  validateSearch: nodeSearch,
  loader: ({ context: { queryClient }, params }) => void queryClient.prefetchQuery(nodeQuery(params.nodeId)),
  component: lazyRouteComponent(() => loadPage(() => import("./pages/node/node-page")), "NodePage"),
});

const importRoute = createRoute({
  getParentRoute: () => appRoute,
  path: "/import",
  component: lazyRouteComponent(() => loadPage(() => import("./pages/import/import-page")), "ImportPage"),
});

const compareRoute = createRoute({
  getParentRoute: () => appRoute,
  path: "/compare",
  validateSearch: compareSearch,
  component: lazyRouteComponent(() => loadPage(() => import("./pages/compare/compare-page")), "ComparePage"),
});

const plannerRoute = createRoute({
  getParentRoute: () => appRoute,
  path: "/planner",
  validateSearch: plannerSearch,
  loaderDeps: ({ search: { node, saved } }) => ({ node, saved }),
  loader: ({ context: { queryClient }, deps: { node, saved } }) => {
    void queryClient.prefetchQuery(enginesQuery());
    if (saved !== undefined) void queryClient.prefetchQuery(scenarioQuery(saved));
    else if (node !== undefined) {
      void queryClient.prefetchQuery(nodeQuery(node));
      void queryClient.prefetchQuery(nodeScenarioQuery(node));
    }
  },
  component: lazyRouteComponent(() => loadPage(() => import("./pages/planner/planner-page")), "PlannerPage"),
});

const plansRoute = createRoute({
  getParentRoute: () => appRoute,
  path: "/plans",
  validateSearch: plansSearch,
  loaderDeps: ({ search }) => search,
  loader: ({ context: { queryClient }, deps }) =>
    void queryClient.prefetchInfiniteQuery(plansQuery({ state: deps.state })),
  component: lazyRouteComponent(() => loadPage(() => import("./pages/planner/kept/plans-page")), "PlansPage"),
});

const keptPlanRoute = createRoute({
  getParentRoute: () => appRoute,
  path: "/plans/$planId",
  loader: ({ context: { queryClient }, params }) =>
    void queryClient.prefetchQuery(savedPlanQuery(params.planId)),
  component: lazyRouteComponent(
    () => loadPage(() => import("./pages/planner/kept/kept-plan-page")),
    "KeptPlanPage",
  ),
});

const evidenceRoute = createRoute({
  getParentRoute: () => appRoute,
  path: "/evidence",
  component: lazyRouteComponent(
    () => loadPage(() => import("./pages/evidence/evidence-page")),
    "EvidencePage",
  ),
});

const settingsRoute = createRoute({
  getParentRoute: () => appRoute,
  path: "/settings",
  component: lazyRouteComponent(
    () => loadPage(() => import("./pages/settings/settings-page")),
    "SettingsPage",
  ),
});

const fleetPlansRoute = createRoute({
  getParentRoute: () => appRoute,
  path: "/fleet-plans",
  validateSearch: fleetPlanSearch,
  loader: ({ context: { queryClient } }) => void queryClient.prefetchQuery(fleetPlansQuery()),
  component: lazyRouteComponent(
    () => loadPage(() => import("./pages/fleet-plan/fleet-plans-page")),
    "FleetPlansPage",
  ),
});

const fleetPlanRoute = createRoute({
  getParentRoute: () => appRoute,
  path: "/fleet-plans/$jobId",
  validateSearch: fleetPlanResultSearch,
  loader: ({ context: { queryClient }, params }) =>
    void queryClient.prefetchQuery(fleetPlanQuery(params.jobId)),
  component: lazyRouteComponent(
    () => loadPage(() => import("./pages/fleet-plan/fleet-plan-page")),
    "FleetPlanPage",
  ),
});

const routeTree = rootRoute.addChildren([
  loginRoute,
  appRoute.addChildren([
    overviewRoute,
    nodesRoute,
    nodeRoute,
    importRoute,
    compareRoute,
    plannerRoute,
    plansRoute,
    keptPlanRoute,
    fleetPlansRoute,
    fleetPlanRoute,
    evidenceRoute,
    settingsRoute,
  ]),
]);

export function createAppRouter(queryClient: QueryClient) {
  return createRouter({
    routeTree,
    context: { queryClient },
    defaultPreload: "intent",
    defaultPreloadStaleTime: 0,
    scrollRestoration: true,
    defaultErrorComponent: PageError,
    defaultNotFoundComponent: AppNotFound,
  });
}

declare module "@tanstack/react-router" {
  interface Register {
    router: ReturnType<typeof createAppRouter>;
  }
}
