import { Tabs } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { runQuery } from "@/api/runs";
import type { NodeDetail, RunDetail } from "@/api/types";
import { QueryView } from "@/components/ui/query-view";
import { QuestionCard } from "@/components/ui/question-card";
import { CardSkeleton } from "@/components/ui/skeletons";
import { StateText } from "@/components/ui/states";
import { RunsCard } from "./machine/runs-card";
import { ScatterCard } from "./machine/scatter-card";
import { TrialsCard } from "./machine/trials-card";
import { HistoryCard } from "./memory/history-card";
import { PoolsCard } from "./memory/pools-card";
import { ProcessesCard } from "./memory/processes-card";
import classes from "./node-tabs.module.css";
import { PressureCard } from "./pressure/pressure-card";
import { RowsCard } from "./pressure/rows-card";
import { WalksCard } from "./pressure/walks-card";
import { InventoryCard } from "./report/inventory-card";
import { ReportCard } from "./report/report-card";

interface NodeTab {
  value: string;
  label: string;
  content: (node: NodeDetail) => ReactNode;
}

const TABS: readonly NodeTab[] = [
  {
    value: "memory",
    label: "Pools and history",
    content: (node) => (
      <>
        <PoolsCard node={node} />
        <HistoryCard node={node} />
      </>
    ),
  },
  {
    value: "processes",
    label: "Processes",
    content: (node) => <ProcessesCard nodeId={node.id} basePageBytes={node.inventory.base_page_bytes} />,
  },
  {
    value: "rows",
    label: "Rows",
    content: (node) => (
      <OfRun node={node} what="rows read per second">
        {(run) =>
          run.rows && run.rows.measurements.length > 0 && <RowsCard measurements={run.rows.measurements} />
        }
      </OfRun>
    ),
  },
  {
    value: "pressure",
    label: "Cache pressure",
    content: (node) => (
      <OfRun node={node} what="what is saved under cache pressure">
        {(run) =>
          (run.pressure !== null || run.curves.some((curve) => curve.section === "latency")) && (
            <PressureCard run={run} basePageBytes={node.inventory.base_page_bytes} />
          )
        }
      </OfRun>
    ),
  },
  {
    value: "walks",
    label: "Page walks",
    content: (node) => (
      <OfRun node={node} what="what a page walk costs">
        {(run) => run.curves.some((curve) => curve.section === "walks") && <WalksCard run={run} />}
      </OfRun>
    ),
  },
  {
    value: "scatter",
    label: "Scatter",
    content: (node) => (
      <OfRun node={node} what="scattered hot lines">
        {(run) => run.curves.some((curve) => curve.section === "scatter") && <ScatterCard run={run} />}
      </OfRun>
    ),
  },
  { value: "trials", label: "Trials", content: (node) => <TrialsCard nodeId={node.id} /> },
  { value: "runs", label: "Runs", content: (node) => <RunsCard nodeId={node.id} /> },
  { value: "machine", label: "Machine", content: (node) => <InventoryCard node={node} /> },
  {
    value: "report",
    label: "Raw report",
    content: (node) => <ReportCard nodeId={node.id} name={node.name} />,
  },
];

/** The rest of what is known of a node, one part at a time; which one is in the address. */
export function NodeTabs({ node }: { node: NodeDetail }) {
  const { tab } = useSearch({ from: "/app/nodes/$nodeId" });
  const navigate = useNavigate({ from: "/nodes/$nodeId" });
  const shown = TABS.find(({ value }) => value === tab) ?? TABS[0];
  return (
    <Tabs
      value={shown?.value ?? null}
      onChange={(value) =>
        void navigate({ search: { tab: value ?? undefined }, replace: true, resetScroll: false })
      }
      keepMounted={false}
    >
      <Tabs.List className={classes.list} aria-label="More about this node">
        {TABS.map(({ value, label }) => (
          <Tabs.Tab key={value} value={value}>
            {label}
          </Tabs.Tab>
        ))}
      </Tabs.List>
      {TABS.map(({ value, content }) => (
        <Tabs.Panel key={value} value={value} className={classes.panel}>
          {content(node)}
        </Tabs.Panel>
      ))}
    </Tabs>
  );
}

interface OfRunProps {
  node: NodeDetail;
  /** What the tab shows, for the sentence that it was not measured. */
  what: string;
  children: (run: RunDetail) => ReactNode;
}

/** A part of the newest run, or why there is none. */
function OfRun({ node, what, children }: OfRunProps) {
  const query = useQuery({ ...runQuery(node.latest_run_id ?? ""), enabled: node.latest_run_id !== null });
  if (node.latest_run_id === null) {
    return (
      <QuestionCard title={`Unknown: ${what}. This node has not been measured.`}>
        <StateText>
          Run <span className="hp-mono">hugeplan-agent once --measure quick</span> on the node.
        </StateText>
      </QuestionCard>
    );
  }
  return (
    <QueryView query={query} skeleton={<CardSkeleton height={340} />}>
      {(run) =>
        children(run) || (
          <QuestionCard title={`Unknown: ${what}. The newest run did not measure it.`}>
            <StateText>
              Profile {run.profile ?? "unknown"}, tlbbench {run.tool_version}. A full run measures everything.
            </StateText>
          </QuestionCard>
        )
      }
    </QueryView>
  );
}
