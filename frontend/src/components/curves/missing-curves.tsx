import { List } from "@mantine/core";
import type { RunCurve } from "@/api/types";
import { PageSizeBadge } from "@/components/ui/badges";
import type { BackingKind } from "@/lib/page-size";
import { curveBacking } from "./curve-series";

const STATUS_WORDS = new Map([
  ["no_free_hugepages", "no free pages of this size in the pool"],
  ["thp_not_granted", "the kernel did not grant transparent huge pages"],
  ["skipped", "skipped"],
  ["stopped", "stopped before its turn"],
  ["noisy", "too noisy to report"],
  ["memory_limit", "it would take more memory than may be used"],
  ["no_memory", "there was no memory for it"],
  ["unsupported", "this processor cannot do it"],
]);

/** Why something was not measured: the program's own words, else what its status means. */
export function statusReason({ status, reason }: { status: string | null; reason: string | null }): string {
  return reason ?? STATUS_WORDS.get(status ?? "") ?? status ?? "no reason was given";
}

/** What was asked for and not measured, with the reason. A missing line is never just absent. */
export function MissingCurves({ curves }: { curves: readonly RunCurve[] }) {
  return (
    <NotMeasured
      items={curves.map((curve) => ({
        key: `${curve.backing}:${curve.layout}:${curve.name}`,
        pageBytes: curve.page_bytes ?? 0,
        kind: curveBacking(curve),
        reason: statusReason(curve),
      }))}
    />
  );
}

interface NotMeasuredItem {
  key: string;
  pageBytes: number;
  kind: BackingKind;
  reason: string;
}

/** Backings without a measurement, each with its reason. */
export function NotMeasured({ items }: { items: readonly NotMeasuredItem[] }) {
  if (items.length === 0) return null;
  return (
    <List listStyleType="none" spacing={6} size="sm">
      {items.map(({ key, pageBytes, kind, reason }) => (
        <List.Item key={key} icon={<PageSizeBadge pageBytes={pageBytes} kind={kind} />}>
          Not measured: {reason}
        </List.Item>
      ))}
    </List>
  );
}
