import { Tabs } from "@mantine/core";
import { useState } from "react";
import type { PlanPreview } from "@/api/types";
import type { ResizePool } from "@/components/memory-map/memory-map";
import { CardSkeleton } from "@/components/ui/skeletons";
import { InstanceCard } from "./databases/instances-card";
import { FindingsCard } from "./details/findings-card";
import { ForecastsCard } from "./details/forecasts-card";
import { InputsCard } from "./details/inputs-card";
import { KubernetesCard } from "./details/kubernetes-card";
import { RiskCard } from "./details/risk-card";
import type { DatabaseForm } from "./draft/planner-form";
import { settingBytes } from "./draft/pool-size";
import { GainsCard } from "./gains/gains-card";
import { PoolBenefitCard } from "./gains/pool-benefit-card";
import { LedgerCard } from "./memory/ledger-card";
import classes from "./plan-view.module.css";

interface PlanViewProps {
  shown: PlanPreview | null;
  hasProblem: boolean;
  /** What stands in the form of each database. */
  databases: readonly DatabaseForm[];
  onResizePool: ResizePool;
  canResizePool: (pageBytes: number) => boolean;
}

/** The pictures beneath the answer: the memory first, then one database at a time, then what folds. */
export function PlanView({ shown, hasProblem, databases, onResizePool, canResizePool }: PlanViewProps) {
  if (!shown) {
    return hasProblem ? null : (
      <div className={classes.result} role="status" aria-label="Loading">
        <CardSkeleton height={80} />
        <CardSkeleton height={180} />
      </div>
    );
  }
  const { plan } = shown;
  return (
    <div className={classes.result}>
      <LedgerCard shown={shown} onResize={onResizePool} canResize={canResizePool} />
      <OneDatabase shown={shown} databases={databases} />
      <RiskCard plan={plan} />
      <FindingsCard plan={plan} />
      <ForecastsCard plan={plan} />
      <KubernetesCard plan={plan} />
      <InputsCard plan={plan} />
    </div>
  );
}

/** Gain, pool size and demand of one database; with several, each has a tab. */
function OneDatabase({ shown, databases }: Pick<PlanViewProps, "databases"> & { shown: PlanPreview }) {
  const [chosen, choose] = useState<string | null>(null);
  const { plan } = shown;
  const instance = plan.instances.find(({ name }) => name === chosen) ?? plan.instances[0];
  if (!instance) return null;
  const workload = databases.find(({ name }) => name.trim() === instance.name)?.workload;
  const cards = (
    <>
      {/* What cannot be installed buys nothing. */}
      {plan.fits !== false && <GainsCard plan={plan} instance={instance.name} />}
      <PoolBenefitCard
        key={instance.name}
        instance={instance}
        hasTable={Boolean(workload?.benefit_table?.trim())}
        workingSetBytes={settingBytes(workload?.working_set, 1)}
      />
      <InstanceCard instance={instance} />
    </>
  );
  if (plan.instances.length === 1) return cards;
  return (
    <Tabs value={instance.name} onChange={choose} keepMounted={false}>
      <Tabs.List className={classes.tabs} aria-label="Databases">
        {plan.instances.map(({ name }) => (
          <Tabs.Tab key={name} value={name}>
            {name}
          </Tabs.Tab>
        ))}
      </Tabs.List>
      <Tabs.Panel value={instance.name} className={classes.result}>
        {cards}
      </Tabs.Panel>
    </Tabs>
  );
}
