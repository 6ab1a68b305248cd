import { Burger } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { useQuery } from "@tanstack/react-query";
import { type ErrorComponentProps, Link, Outlet, useRouter } from "@tanstack/react-router";
import { type ComponentType, lazy, type ReactNode, Suspense, useEffect, useRef } from "react";
import { loadPart } from "@/api/load-part";
import { sessionQuery } from "@/api/session";
import {
  CompareIcon,
  EvidenceIcon,
  FleetPlanIcon,
  ImportIcon,
  NodesIcon,
  OverviewIcon,
  PlannerIcon,
  PlansIcon,
  SettingsIcon,
} from "@/components/ui/icons";
import { LinkButton } from "@/components/ui/link-button";
import { EmptyState, ErrorState, StateText } from "@/components/ui/states";
import { leaveFiles } from "@/lib/dropped-files";
import classes from "./app-layout.module.css";
import { Logo } from "./logo";
import { ServerAway } from "./server-away";

// Nothing of the first page waits for it. Without it the page still asks by a clock.
const LiveStatus = lazy(
  (): Promise<{ default: ComponentType }> =>
    loadPart(() => import("./live-status")).catch(() => ({ default: () => null })),
);

const NAVIGATION = [
  { to: "/", label: "Overview", icon: <OverviewIcon /> },
  { to: "/nodes", label: "Nodes", icon: <NodesIcon /> },
  { to: "/import", label: "Import", icon: <ImportIcon /> },
  { to: "/compare", label: "Compare", icon: <CompareIcon /> },
  { to: "/planner", label: "Planner", icon: <PlannerIcon /> },
  { to: "/plans", label: "Plans", icon: <PlansIcon /> },
  { to: "/fleet-plans", label: "Fleet plan", icon: <FleetPlanIcon /> },
  { to: "/evidence", label: "Evidence", icon: <EvidenceIcon /> },
  { to: "/settings", label: "Settings", icon: <SettingsIcon /> },
] as const;

/** The shell: navigation on the left, one column of content. */
export function AppLayout() {
  return (
    <Shell>
      <Outlet />
    </Shell>
  );
}

function Shell({ children }: { children: ReactNode }) {
  const [opened, { toggle, close }] = useDisclosure();
  const { data: session } = useQuery(sessionQuery());
  useFocusOnNavigation();
  useDroppedFiles();
  return (
    <div className={classes.frame}>
      <a className="hp-skip-link" href="#content">
        Skip to the content
      </a>
      <header className={classes.header}>
        <Burger opened={opened} onClick={toggle} size="sm" aria-label="Navigation" aria-expanded={opened} />
        <Logo size={22} />
        <strong>hugeplan</strong>
      </header>
      <aside className={classes.side} data-opened={opened}>
        <Link to="/" className={classes.brand} onClick={close}>
          <Logo size={26} />
          hugeplan
        </Link>
        <nav className={classes.nav} aria-label="Main">
          {NAVIGATION.map(({ to, label, icon }) => (
            <Link
              key={to}
              to={to}
              className={classes.link}
              activeOptions={{ exact: to === "/", includeSearch: false }}
              onClick={close}
            >
              {icon}
              {label}
            </Link>
          ))}
        </nav>
        {session && (
          <div className={classes.who}>
            Signed in as <strong>{session.name}</strong>
            <br />
            Role: {session.role}
            <Suspense fallback={null}>
              <LiveStatus />
            </Suspense>
          </div>
        )}
      </aside>
      <main className={classes.main}>
        <div id="content" className={classes.content} tabIndex={-1}>
          <ServerAway />
          {children}
        </div>
      </main>
    </div>
  );
}

/** Moves the focus to the content after a change of page, as a full page load would. */
function useFocusOnNavigation() {
  const router = useRouter();
  const first = useRef(true);
  useEffect(
    () =>
      router.subscribe("onResolved", ({ pathChanged }) => {
        if (first.current) {
          first.current = false;
        } else if (pathChanged) {
          document.getElementById("content")?.focus({ preventScroll: true });
        }
      }),
    [router],
  );
}

/** A browser leaves the page for a file that nobody takes: the page for files takes it, whichever page it was dropped on. */
function useDroppedFiles() {
  const router = useRouter();
  useEffect(() => {
    const withFiles = (take: (files: readonly File[]) => void) => (event: DragEvent) => {
      if (!event.dataTransfer?.types.includes("Files")) return;
      event.preventDefault();
      take([...event.dataTransfer.files]);
    };
    const over = withFiles(() => {});
    const drop = withFiles((files) => {
      if (router.latestLocation.pathname === "/import") return;
      leaveFiles(files);
      void router.navigate({ to: "/import" });
    });
    window.addEventListener("dragover", over);
    window.addEventListener("drop", drop);
    return () => {
      window.removeEventListener("dragover", over);
      window.removeEventListener("drop", drop);
    };
  }, [router]);
}

/** What is shown when the session cannot be read for another reason than being signed out. */
export function AppError({ error, reset }: ErrorComponentProps) {
  const router = useRouter();
  return (
    <main className={classes.alone}>
      <ErrorState
        error={error}
        onRetry={() => {
          reset();
          void router.invalidate();
        }}
      />
    </main>
  );
}

export function AppNotFound() {
  return (
    <main className={classes.alone}>
      <EmptyState title="There is no such page">
        <StateText>The address may be cut off, or the page has moved.</StateText>
        <LinkButton to="/" variant="default">
          Go to the overview
        </LinkButton>
      </EmptyState>
    </main>
  );
}
