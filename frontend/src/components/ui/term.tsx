import { lazy, type MouseEvent, type ReactNode, Suspense, useRef, useState } from "react";
import { loadPart } from "@/api/load-part";
import type { TermName } from "./glossary";
import classes from "./term.module.css";

// The glossary and what places it are loaded when the first term is asked for.
const TermBox = lazy(() => loadPart(() => import("./term-box")));

interface TermProps {
  name: TermName;
  children: ReactNode;
}

/** A term with its explanation and a source one click, touch or key away. */
export function Term({ name, children }: TermProps) {
  return (
    <Explained name={name} className={classes.term}>
      {children}
    </Explained>
  );
}

/** The same beside a term that does something else when it is clicked, such as sort its column. */
export function TermMark({ name, of }: { name: TermName; of: string }) {
  return (
    <Explained name={name} className={classes.mark} label={`Explain ${of}`}>
      ?
    </Explained>
  );
}

function Explained({ name, children, className, label }: TermProps & { className?: string; label?: string }) {
  const [isWanted, want] = useState(false);
  const [opened, setOpened] = useState(false);
  // Pressing the mouse outside of an open box closes it, before the click: that click must not open it again.
  const wasOpened = useRef(false);
  const button = useRef<HTMLButtonElement>(null);
  const toggle = (event: MouseEvent) => {
    const isKey = event.detail === 0;
    want(true);
    setOpened(isKey ? !opened : !wasOpened.current);
  };
  const change = (next: boolean) => {
    setOpened(next);
    // Before the box is gone. A click elsewhere moves the focus on from here.
    if (!next) button.current?.focus({ preventScroll: true });
  };
  return (
    <>
      <button
        ref={button}
        type="button"
        className={className}
        aria-label={label}
        aria-haspopup="dialog"
        aria-expanded={opened}
        onMouseDown={() => {
          wasOpened.current = opened;
        }}
        onClick={toggle}
      >
        {children}
      </button>
      {isWanted && (
        <Suspense fallback={null}>
          <TermBox name={name} opened={opened} onChange={change} />
        </Suspense>
      )}
    </>
  );
}
