import { type CSSProperties, type ReactNode, useCallback, useState } from "react";
import classes from "./table.module.css";

interface TableScrollProps {
  /** What the table holds, for screen readers. */
  label: string;
  minWidth: number;
  maxHeight?: number;
  children: ReactNode;
}

/** A wide table in a box of its own. The box is a tab stop only while it really scrolls. */
export function TableScroll({ label, minWidth, maxHeight, children }: TableScrollProps) {
  const [scrolls, setScrolls] = useState(false);
  const watch = useCallback((box: HTMLElement | null) => {
    if (!box) return;
    const observer = new ResizeObserver(() =>
      setScrolls(box.scrollWidth > box.clientWidth || box.scrollHeight > box.clientHeight),
    );
    observer.observe(box);
    return () => observer.disconnect();
  }, []);
  const width = { "--table-min-width": `${minWidth}px` } as CSSProperties;
  return (
    <section
      ref={watch}
      className={classes.scroll}
      style={{ ...width, maxHeight, overflowY: maxHeight ? "auto" : undefined }}
      aria-label={label}
      tabIndex={scrolls ? 0 : undefined}
    >
      <div className={classes.content}>{children}</div>
    </section>
  );
}
