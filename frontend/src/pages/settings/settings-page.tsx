import "@/theme/mantine-pages.css";
import { Button, SegmentedControl, Stack, useMantineColorScheme } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { sessionQuery, useLogout } from "@/api/session";
import { PageHeader } from "@/components/ui/page-header";
import { QuestionCard } from "@/components/ui/question-card";
import { ErrorState, StateText } from "@/components/ui/states";
import { When } from "@/components/ui/values";
import { AboutCard } from "./about-card";
import { AuditCard } from "./audit-card";
import { EnrolCard } from "./enrol-card";
import { EnrolmentsCard } from "./enrolments-card";
import { SessionsCard } from "./sessions-card";
import { TokensCard } from "./tokens-card";

/** The reader's own settings, and the credentials for administrators. */
export function SettingsPage() {
  const { data: session } = useQuery(sessionQuery());
  return (
    <>
      <PageHeader title="Settings" />
      <Stack gap="md">
        <ThemeCard />
        <SessionCard />
        {session?.role === "admin" && <EnrolmentsCard />}
        {session?.role === "admin" && <EnrolCard />}
        {session?.role === "admin" && <TokensCard />}
        <SessionsCard />
        {session?.role === "admin" && <AuditCard />}
        <AboutCard />
      </Stack>
    </>
  );
}

function ThemeCard() {
  const { colorScheme, setColorScheme } = useMantineColorScheme();
  return (
    <QuestionCard title="Light or dark?">
      <SegmentedControl
        aria-label="Colour scheme"
        className="hp-start"
        value={colorScheme}
        onChange={(value) => setColorScheme(value as typeof colorScheme)}
        data={[
          { value: "auto", label: "As the system" },
          { value: "light", label: "Light" },
          { value: "dark", label: "Dark" },
        ]}
      />
    </QuestionCard>
  );
}

function SessionCard() {
  const { data: session } = useQuery(sessionQuery());
  const logout = useLogout();
  const navigate = useNavigate();
  if (!session) return null;
  return (
    <QuestionCard title={`You are signed in as ${session.name}.`}>
      <StateText>
        Role: {session.role}.{" "}
        {session.expires_at && (
          <>
            The session ends <When iso={session.expires_at} />.
          </>
        )}
      </StateText>
      {logout.isError && <ErrorState error={logout.error} bare />}
      <Button
        variant="default"
        className="hp-start"
        loading={logout.isPending}
        onClick={() =>
          logout.mutate(undefined, { onSuccess: () => void navigate({ to: "/login", search: {} }) })
        }
      >
        Sign out
      </Button>
    </QuestionCard>
  );
}
