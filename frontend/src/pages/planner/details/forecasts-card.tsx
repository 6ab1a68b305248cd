import type { Plan } from "@/api/types";
import { IntervalChart } from "@/components/charts/interval-chart";
import { FoldCard } from "@/components/ui/fold-card";
import { Bytes } from "@/components/ui/values";
import { formatBytesDelta, formatCount } from "@/lib/units";
import { token } from "@/theme/tokens";

/** How long the headroom lasts. Nothing is shown without a history to say it from. */
export function ForecastsCard({ plan }: { plan: Plan }) {
  const { forecasts } = plan;
  if (forecasts.length === 0) return null;
  const known = forecasts.flatMap(({ days_until_full: days }) => (days ? [days] : []));
  const soonest = known.length > 0 ? Math.min(...known.map(({ likely }) => likely)) : null;
  return (
    <FoldCard
      title={
        soonest === null
          ? "How long will the headroom last? Not known yet."
          : `The headroom is likely gone in ${formatCount(soonest)} days.`
      }
    >
      <IntervalChart
        title="Days until the headroom is gone"
        nameHeader="Of"
        valueHeader="Days"
        extraHeaders={["Headroom", "Growth per day"]}
        format={formatCount}
        rows={forecasts.map((forecast) => ({
          key: forecast.subject,
          name: forecast.subject,
          range: forecast.days_until_full,
          color: token("ledger-tenants"),
          why: forecast.basis,
          detail: forecast.basis,
          extra: [
            <Bytes key="headroom" value={forecast.headroom_bytes} />,
            forecast.growth_bytes_per_day ? formatBytesDelta(forecast.growth_bytes_per_day.likely) : "",
          ],
        }))}
      />
    </FoldCard>
  );
}
