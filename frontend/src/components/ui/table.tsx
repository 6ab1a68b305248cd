import type { ComponentPropsWithRef, CSSProperties } from "react";
import classes from "./table.module.css";

// Mantine's Table brings its scroll area and the placement of floating boxes with it, 20 KiB of the first page.
// This one is what of it the pages use.

interface TableProps extends ComponentPropsWithRef<"table"> {
  /** Pixels above and below a cell's content. */
  verticalSpacing?: number;
  /** Pixels beside a cell's content. */
  horizontalSpacing?: number;
  layout?: "auto" | "fixed";
  /** The head stays in view while the box around the table scrolls. */
  stickyHeader?: boolean;
  striped?: boolean;
  highlightOnHover?: boolean;
  withRowBorders?: boolean;
  /**
   * On a telephone each row is a block: its name, and beneath it the cells, each with its `label`. Columns with an
   * explanation stand in one line above the rows.
   */
  stacks?: boolean;
}

interface CellStyle {
  /** Font weight. */
  fw?: CSSProperties["fontWeight"];
  /** Width. */
  w?: CSSProperties["width"];
}

function joined(...names: (string | undefined | false)[]): string {
  return names.filter(Boolean).join(" ");
}

function TableRoot({
  verticalSpacing = 7,
  horizontalSpacing = 10,
  layout = "auto",
  stickyHeader = false,
  striped = false,
  highlightOnHover = false,
  withRowBorders = true,
  stacks = false,
  className,
  style,
  ...rest
}: TableProps) {
  const spacing = {
    "--table-vertical": `${verticalSpacing / 16}rem`,
    "--table-horizontal": `${horizontalSpacing / 16}rem`,
    tableLayout: layout,
  } as CSSProperties;
  return (
    <table
      className={joined(classes.table, className)}
      style={{ ...spacing, ...style }}
      data-sticky={stickyHeader || undefined}
      data-striped={striped || undefined}
      data-hover={highlightOnHover || undefined}
      data-borders={withRowBorders || undefined}
      data-stacks={stacks || undefined}
      {...rest}
    />
  );
}

function Th({ fw, w, style, ...rest }: ComponentPropsWithRef<"th"> & CellStyle) {
  return <th style={{ fontWeight: fw, width: w, ...style }} {...rest} />;
}

interface CellLabel {
  /** The column's name, which stands above the cell where the rows of a table stack. */
  label?: string;
  /** There it holds a sentence, and takes the whole line. */
  isText?: boolean;
}

function Td({ fw, w, style, label, isText, ...rest }: ComponentPropsWithRef<"td"> & CellStyle & CellLabel) {
  return (
    <td
      style={{ fontWeight: fw, width: w, ...style }}
      data-label={label}
      data-text={isText || undefined}
      {...rest}
    />
  );
}

/** A plain table with the pages' spacing and lines. */
export const Table = Object.assign(TableRoot, {
  Thead: (props: ComponentPropsWithRef<"thead">) => <thead {...props} />,
  Tbody: (props: ComponentPropsWithRef<"tbody">) => <tbody {...props} />,
  Tr: (props: ComponentPropsWithRef<"tr">) => <tr {...props} />,
  Th,
  Td,
});
