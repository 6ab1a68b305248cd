import "@/theme/mantine-pages.css";
import { Stack } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import {
  backtestQuery,
  evidenceQuery,
  fleetTrialsQuery,
  modelErrorsQuery,
  validationQuery,
} from "@/api/evidence";
import { PageHeader } from "@/components/ui/page-header";
import { QueryView } from "@/components/ui/query-view";
import { TableSkeleton } from "@/components/ui/skeletons";
import { BacktestCards } from "./backtest-card";
import { ModelErrorCard } from "./model-error-card";
import { PublishedCard } from "./published-card";
import { TrialsOfFleetCard } from "./trials-card";
import { ValidationCard } from "./validation-card";

/** What others published about page sizes, and how the model does against it. */
export function EvidencePage() {
  const evidence = useQuery(evidenceQuery());
  const backtest = useQuery(backtestQuery());
  const validation = useQuery(validationQuery());
  const trials = useQuery(fleetTrialsQuery());
  const errors = useQuery(modelErrorsQuery());
  return (
    <>
      <PageHeader
        title="Evidence"
        headline="The model beside own measurements and published results. What it cannot explain is shown as such."
      />
      <Stack gap="md">
        <QueryView query={trials} skeleton={<TableSkeleton rows={3} />}>
          {(data) => <TrialsOfFleetCard trials={data.items} />}
        </QueryView>
        <QueryView query={errors} skeleton={<TableSkeleton rows={3} />}>
          {(data) => <ModelErrorCard errors={data} />}
        </QueryView>
        <QueryView query={validation} skeleton={<TableSkeleton />}>
          {(data) => <ValidationCard validation={data} />}
        </QueryView>
        <QueryView query={backtest} skeleton={<TableSkeleton />}>
          {(data) => <BacktestCards backtest={data} />}
        </QueryView>
        <QueryView query={evidence} skeleton={<TableSkeleton rows={10} />}>
          {(data) => <PublishedCard evidence={data} />}
        </QueryView>
      </Stack>
    </>
  );
}
