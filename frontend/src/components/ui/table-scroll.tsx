import { useResizeObserver } from "@mantine/hooks";
import type { ReactNode } from "react";

interface TableScrollProps {
  /** What the table holds, for screen readers. */
  label: string;
  minWidth: number;
  maxHeight?: number;
  children: ReactNode;
}

/** A wide table in a box of its own. The box is a tab stop only while it really scrolls. */
export function TableScroll({ label, minWidth, maxHeight, children }: TableScrollProps) {
  const [ref, { width }] = useResizeObserver<HTMLElement>();
  const scrolls = (width > 0 && width < minWidth) || maxHeight !== undefined;
  return (
    <section
      ref={ref}
      aria-label={label}
      tabIndex={scrolls ? 0 : undefined}
      style={{ overflow: "auto", maxHeight }}
    >
      <div style={{ minWidth }}>{children}</div>
    </section>
  );
}
