import { Table } from "@mantine/core";
import { type ReactNode, useCallback, useState } from "react";

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
  return (
    <Table.ScrollContainer
      ref={watch}
      type="native"
      minWidth={minWidth}
      maxHeight={maxHeight}
      role="region"
      aria-label={label}
      tabIndex={scrolls ? 0 : undefined}
    >
      {children}
    </Table.ScrollContainer>
  );
}
