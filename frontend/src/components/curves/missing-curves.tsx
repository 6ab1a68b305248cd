import type { RunCurve } from "@/api/types";
import { PageSizeBadge } from "@/components/ui/badges";
import { curveBacking } from "./curve-series";

const STATUS_WORDS: Record<string, string> = {
  no_free_hugepages: "no free pages of this size in the pool",
  thp_not_granted: "the kernel did not grant transparent huge pages",
  skipped: "skipped",
  stopped: "stopped before its turn",
  noisy: "too noisy to report",
};

/** What was asked for and not measured, with the reason. A missing line is never just absent. */
export function MissingCurves({ curves }: { curves: readonly RunCurve[] }) {
  if (curves.length === 0) return null;
  return (
    <ul
      style={{
        display: "flex",
        flexDirection: "column",
        gap: 6,
        margin: 0,
        padding: 0,
        listStyle: "none",
        fontSize: 14,
      }}
    >
      {curves.map((curve) => (
        <li
          key={`${curve.backing}:${curve.layout}:${curve.name}`}
          style={{ display: "flex", gap: 8, alignItems: "baseline" }}
        >
          <PageSizeBadge pageBytes={curve.page_bytes ?? 0} kind={curveBacking(curve)} />
          <span>Not measured: {curve.reason ?? STATUS_WORDS[curve.status] ?? curve.status}</span>
        </li>
      ))}
    </ul>
  );
}
