import { Tooltip, type TooltipProps } from "@mantine/core";
import { createContext, type ReactNode, useContext } from "react";
import classes from "./hint.module.css";

/** True inside large tables, where a tab stop per value would keep a keyboard reader from getting anywhere. */
const Dense = createContext(false);

/** Values inside have no hints: the table's export and the pages it links to have them. */
export function DenseValues({ children }: { children: ReactNode }) {
  return <Dense value={true}>{children}</Dense>;
}

interface HintProps extends Pick<TooltipProps, "disabled"> {
  /** What the hint says; nothing gives no hint. */
  label: ReactNode;
  children: ReactNode;
  className?: string;
}

/** A text with a hint, reached by pointer, by touch and by keyboard. */
export function Hint({ label, disabled, className, children }: HintProps) {
  const dense = useContext(Dense);
  if (dense || disabled || !label)
    return className ? <span className={className}>{children}</span> : children;
  return (
    <Tooltip label={label}>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a hint must be reachable by keyboard (WCAG 1.4.13, 2.1.1) */}
      <span tabIndex={0} className={`${classes.hint} ${className ?? ""}`}>
        {children}
      </span>
    </Tooltip>
  );
}
