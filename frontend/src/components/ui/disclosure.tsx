import { type ReactNode, useId, useState } from "react";
import classes from "./disclosure.module.css";

interface DisclosureProps {
  /** What is behind it, in a few words. */
  label: ReactNode;
  /** Open from the start. */
  open?: boolean;
  children: ReactNode;
}

/** Something that a reader may want to see: one line that opens. What is closed is not in the page. */
export function Disclosure({ label, open = false, children }: DisclosureProps) {
  const [isOpen, setOpen] = useState(open);
  const id = useId();
  return (
    <div>
      <button
        type="button"
        className={classes.control}
        aria-expanded={isOpen}
        aria-controls={isOpen ? id : undefined}
        onClick={() => setOpen(!isOpen)}
      >
        <ChevronIcon />
        {label}
      </button>
      {isOpen && (
        <div id={id} className={classes.panel}>
          {children}
        </div>
      )}
    </div>
  );
}

/** Points right, and down inside a control that is expanded. */
export function ChevronIcon() {
  return (
    <svg className={classes.chevron} viewBox="0 0 16 16" aria-hidden="true">
      <path d="M6 3.5 10.5 8 6 12.5" />
    </svg>
  );
}
