import { useVirtualizer } from "@tanstack/react-virtual";
import { memo, useEffect, useRef } from "react";
import type { NodeSummary } from "@/api/types";
import { SyntheticBadge } from "@/components/ui/badges";
import { DenseValues } from "@/components/ui/hint";
import { Term, TermMark } from "@/components/ui/term";
import { TextLink } from "@/components/ui/text-link";
import type { NodesSearch } from "@/search";
import type { NodeColumn } from "./node-columns";
import classes from "./node-table.module.css";

const ROW_PX = 40;
const OVERSCAN_ROWS = 12;
const NAME_REM = 17.5;

interface NodeTableProps {
  /** The nodes that have arrived, from the first on. */
  nodes: readonly NodeSummary[];
  /** How many there are; the ones that have not arrived are drawn as such. */
  total: number;
  columns: readonly NodeColumn[];
  /** The reader chose the columns: then none is left out on a narrow screen. */
  isChosen: boolean;
  search: NodesSearch;
  onSort: (sort: NonNullable<NodesSearch["sort"]>, down: boolean) => void;
  /** Called while rows are in view, or soon will be, that have not arrived. */
  onMore: () => void;
}

/** Nodes as a table of which only the rows in view are in the document, however many there are. */
export function NodeTable({ nodes, total, columns, isChosen, search, onSort, onMore }: NodeTableProps) {
  const box = useRef<HTMLDivElement>(null);
  const rows = useVirtualizer({
    count: total,
    getScrollElement: () => box.current,
    estimateSize: () => ROW_PX,
    overscan: OVERSCAN_ROWS,
  });
  const visible = rows.getVirtualItems();
  const first = visible[0];
  const last = visible.at(-1);
  const isShort = last !== undefined && last.index >= nodes.length;
  // Each page that arrives asks for the next one until what is in view is there.
  useEffect(() => {
    if (isShort && nodes.length < total) onMore();
  }, [isShort, nodes.length, total, onMore]);
  const order = `${search.sort ?? "name"} ${search.down ?? false}`;
  // biome-ignore lint/correctness/useExhaustiveDependencies: another order begins at its top
  useEffect(() => {
    box.current?.scrollTo({ top: 0 });
  }, [order]);
  const above = first?.start ?? 0;
  const below = rows.getTotalSize() - (last?.end ?? 0);
  const widthRem = NAME_REM + columns.reduce((sum, column) => sum + column.widthRem, 0);
  return (
    <section
      ref={box}
      className={classes.box}
      aria-label="Nodes"
      // biome-ignore lint/a11y/noNoninteractiveTabindex: a box that scrolls must be reachable by keyboard
      tabIndex={0}
    >
      <table
        className={classes.table}
        data-chosen={isChosen}
        style={{ "--table-width": `${widthRem}rem` } as React.CSSProperties}
        aria-rowcount={total + 1}
      >
        <thead>
          <tr aria-rowindex={1}>
            <Header column={NAME} search={search} onSort={onSort} />
            {columns.map((column) => (
              <Header key={column.key} column={column} search={search} onSort={onSort} />
            ))}
          </tr>
        </thead>
        <tbody>
          {above > 0 && <Spacer px={above} />}
          <DenseValues>
            {visible.map(({ index }) => (
              <NodeRow key={index} index={index} node={nodes[index]} columns={columns} />
            ))}
          </DenseValues>
          {below > 0 && <Spacer px={below} />}
        </tbody>
      </table>
    </section>
  );
}

function Spacer({ px }: { px: number }) {
  return (
    // biome-ignore lint/a11y/noAriaHiddenOnFocusable: a row without content cannot have the focus
    <tr aria-hidden="true">
      <td style={{ height: px, padding: 0, border: 0 }} />
    </tr>
  );
}

type HeaderColumn = Omit<NodeColumn, "key" | "render" | "widthRem"> & { widthRem?: number };

/** The name takes the width that the others leave. */
const NAME: HeaderColumn = { label: "Node", sort: "name", decisive: true };

type HeaderProps = Pick<NodeTableProps, "search" | "onSort"> & { column: HeaderColumn };

function Header({ column, search, onSort }: HeaderProps) {
  const { label, term, sort, largestFirst, widthRem, widthPercent, isNumber, decisive } = column;
  const isSorted = sort !== undefined && (search.sort ?? "name") === sort;
  const direction = search.down ? "descending" : "ascending";
  return (
    <th
      scope="col"
      className={isNumber ? "hp-num" : undefined}
      data-wide={!decisive}
      data-column={sort}
      // A reader hears the column's name with each cell, without the help beside it.
      aria-label={sort && term ? label : undefined}
      style={widthRem ? { width: widthPercent ? `${widthPercent}%` : `${widthRem}rem` } : undefined}
      aria-sort={isSorted ? direction : undefined}
    >
      {sort ? (
        <span className={classes.head}>
          <button
            type="button"
            className={classes.sort}
            onClick={() => onSort(sort, isSorted ? !search.down : Boolean(largestFirst))}
          >
            {label}
            <span aria-hidden="true" className={classes.arrow}>
              {isSorted ? (search.down ? "↓" : "↑") : "↕"}
            </span>
          </button>
          {term && <TermMark name={term} of={label} />}
        </span>
      ) : term ? (
        <Term name={term}>{label}</Term>
      ) : (
        label
      )}
    </th>
  );
}

interface NodeRowProps {
  index: number;
  node: NodeSummary | undefined;
  columns: readonly NodeColumn[];
}

/** One row. It is drawn again only when its node or the columns change, not while the table scrolls. */
const NodeRow = memo(function NodeRow({ index, node, columns }: NodeRowProps) {
  return (
    <tr aria-rowindex={index + 2} className={classes.row}>
      <th scope="row">
        {node ? (
          <span className={classes.name}>
            <TextLink to="/nodes/$nodeId" params={{ nodeId: node.id }} title={node.name} preload={false}>
              {node.name}
            </TextLink>
            {node.synthetic && <SyntheticBadge />}
          </span>
        ) : (
          <span className={classes.absent}>loading</span>
        )}
      </th>
      {columns.map((column) => (
        <td
          key={column.key}
          className={column.isNumber ? "hp-num" : undefined}
          data-wide={!column.decisive}
          title={node && column.key === "machine_type" ? (node.machine_type ?? undefined) : undefined}
        >
          {node && column.render(node)}
        </td>
      ))}
    </tr>
  );
});
