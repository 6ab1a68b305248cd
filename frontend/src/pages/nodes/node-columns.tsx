import type { ReactNode } from "react";
import type { NodeSummary } from "@/api/types";
import { PageSizeBadge, type State, StateBadge } from "@/components/ui/badges";
import type { TermName } from "@/components/ui/glossary";
import { Bytes, Known, PageSize, Unknown, When } from "@/components/ui/values";
import { shortMachineType } from "@/lib/machine-type";
import { formatCount, formatShare } from "@/lib/units";
import type { NodesSearch } from "@/search";

export interface NodeColumn {
  key: string;
  label: string;
  /** What the glossary says of it. */
  term?: TermName;
  /** The server's word for this order. */
  sort?: NonNullable<NodesSearch["sort"]>;
  /** Sorted from the largest down first: what a reader looks for in a column of sizes. */
  largestFirst?: boolean;
  /** Least width. */
  widthRem: number;
  /** Share of a wide table's width. */
  widthPercent?: number;
  isNumber?: boolean;
  /** Shown on a telephone too. */
  decisive?: boolean;
  render: (node: NodeSummary) => ReactNode;
}

const PLAN_WORDS = { match: "As planned", short: "Too few", idle: "Too many", drifted: "Drifted" };

/** As the node's own findings have it: missing pages are no fault before the first report under the plan. */
export function planLook(state: keyof typeof PLAN_WORDS, findingsWrong: number): State {
  if (state === "match") return "ok";
  return state !== "idle" && findingsWrong > 0 ? "wrong" : "attention";
}

/** What a table of nodes can show beside the name. */
export const NODE_COLUMNS: readonly NodeColumn[] = [
  {
    key: "findings",
    label: "Problems",
    sort: "findings",
    largestFirst: true,
    widthRem: 7.75,
    decisive: true,
    render: (node) => <Problems node={node} />,
  },
  {
    key: "machine_type",
    label: "Machine type",
    widthRem: 12,
    widthPercent: 19,
    render: ({ machine_type: type }) => <Known value={type && shortMachineType(type)} />,
  },
  {
    key: "mem_total_bytes",
    label: "Memory",
    sort: "mem_total_bytes",
    largestFirst: true,
    widthRem: 5.5,
    isNumber: true,
    render: (node) => <Bytes value={node.mem_total_bytes} />,
  },
  {
    key: "mem_available_bytes",
    label: "Available",
    sort: "mem_available_bytes",
    widthRem: 6,
    isNumber: true,
    render: (node) => <Bytes value={node.mem_available_bytes} />,
  },
  {
    key: "pools",
    label: "Pools",
    term: "huge-page-pool",
    widthRem: 8.5,
    render: (node) => <Pools node={node} />,
  },
  {
    key: "pool_bytes",
    label: "In pools",
    term: "huge-page-pool",
    sort: "pool_bytes",
    largestFirst: true,
    widthRem: 7.5,
    isNumber: true,
    render: (node) => <Bytes value={node.pool_bytes} />,
  },
  {
    key: "pool_idle_bytes",
    label: "Idle",
    term: "idle",
    sort: "pool_idle_bytes",
    largestFirst: true,
    widthRem: 6.25,
    isNumber: true,
    decisive: true,
    render: (node) => <Bytes value={node.pool_idle_bytes} />,
  },
  {
    key: "pool_idle_share",
    label: "Idle share",
    term: "idle",
    widthRem: 6,
    isNumber: true,
    render: ({ pool_bytes: pool, pool_idle_bytes: idle }) =>
      pool === 0 ? "" : pool === null || idle === null ? <Unknown /> : formatShare(idle / pool),
  },
  {
    key: "effective_granule_bytes",
    label: "2 MiB entry covers",
    term: "effective-page-size",
    widthRem: 7.5,
    isNumber: true,
    render: (node) => <PageSize bytes={node.effective_granule_bytes} />,
  },
  {
    key: "plan_state",
    label: "Plan in force",
    term: "plan-in-force",
    widthRem: 7,
    render: ({ plan_state: state, findings_wrong: wrong }) =>
      state ? (
        <StateBadge state={planLook(state, wrong)} text={PLAN_WORDS[state]} />
      ) : (
        <span className="hp-dim">none</span>
      ),
  },
  {
    key: "numa_node_count",
    label: "NUMA nodes",
    term: "numa-node",
    widthRem: 6,
    isNumber: true,
    render: (node) => formatCount(node.numa_node_count),
  },
  { key: "architecture", label: "Architecture", widthRem: 7, render: (node) => node.architecture },
  {
    key: "labels",
    label: "Labels",
    widthRem: 16,
    render: ({ labels }) =>
      Object.entries(labels)
        .map(([key, value]) => (value ? `${key}=${value}` : key))
        .join(", "),
  },
  {
    key: "last_report_at",
    label: "Last report",
    sort: "last_report_at",
    widthRem: 8.5,
    isNumber: true,
    render: (node) => <When iso={node.last_report_at} />,
  },
];

const USUAL = ["findings", "machine_type", "mem_total_bytes", "pools", "pool_idle_bytes", "plan_state"];

/** The columns that are wished, in the table's order; a word that is no column is left out. */
export function chosenColumns(wanted: readonly string[] | undefined): NodeColumn[] {
  const keys = new Set(wanted ?? USUAL);
  return NODE_COLUMNS.filter(({ key }) => keys.has(key));
}

/** The wished columns after one was added or taken away; undefined when they are the usual ones. */
export function toggleColumn(wanted: readonly string[] | undefined, key: string): string[] | undefined {
  const shown = chosenColumns(wanted).map((column) => column.key);
  const keys = NODE_COLUMNS.map((column) => column.key).filter(
    (column) => shown.includes(column) !== (column === key),
  );
  return keys.join() === USUAL.join() ? undefined : keys;
}

function Problems({ node }: { node: NodeSummary }) {
  const { findings_wrong: wrong, findings_attention: attention } = node;
  if (wrong > 0) return <StateBadge state="wrong" text={`${wrong} wrong`} />;
  if (attention > 0) return <StateBadge state="attention" text={`${attention} attention`} />;
  if (node.stale) return <StateBadge state="unknown" text="Not reporting" />;
  return <span className="hp-dim">none found</span>;
}

function Pools({ node }: { node: NodeSummary }) {
  const filled = node.pools.filter((pool) => pool.nr_hugepages > 0);
  if (filled.length === 0) return <span className="hp-dim">none</span>;
  return filled.map((pool) => (
    <span key={pool.page_bytes} className="hp-item">
      <PageSizeBadge pageBytes={pool.page_bytes} kind="hugetlb" /> {formatCount(pool.nr_hugepages)}
    </span>
  ));
}
