import {
  createContext,
  lazy,
  type ReactNode,
  type RefObject,
  Suspense,
  useContext,
  useId,
  useRef,
  useState,
} from "react";
import { loadPart } from "@/api/load-part";
import classes from "./hint.module.css";

// The machinery that places a hint is larger than most pages: it is loaded when the first hint is asked for.
const HintBox = lazy(() => loadPart(() => import("./hint-box")));

/** True inside large tables, where a tab stop per value would keep a keyboard reader from getting anywhere. */
const Dense = createContext(false);

/** Values inside have no hints: the table's export and the pages it links to have them. */
export function DenseValues({ children }: { children: ReactNode }) {
  return <Dense value={true}>{children}</Dense>;
}

const OPEN_DELAY_MS = 120;

/** What makes an element show a hint by pointer, by touch and by keyboard; Escape closes it (WCAG 1.4.13). */
export function useHint<T extends HTMLElement>(
  label: ReactNode,
): {
  ref: RefObject<T | null>;
  /** The id of the hint while it is open, for `aria-describedby`. */
  describedBy: string | undefined;
  handlers: Pick<
    React.DOMAttributes<T>,
    "onPointerEnter" | "onPointerLeave" | "onFocus" | "onBlur" | "onKeyDown" | "onClick"
  >;
  box: ReactNode;
} {
  const ref = useRef<T>(null);
  const id = useId();
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  // Loaded with the first wish to see it, then kept, so that it opens at once.
  const [isWanted, want] = useState(false);
  const [opened, setOpened] = useState(false);
  const open = (afterMs: number) => {
    want(true);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => setOpened(true), afterMs);
  };
  const close = () => {
    clearTimeout(timer.current);
    setOpened(false);
  };
  return {
    ref,
    describedBy: opened ? id : undefined,
    handlers: {
      onPointerEnter: () => open(OPEN_DELAY_MS),
      onPointerLeave: close,
      onFocus: () => open(0),
      onBlur: close,
      onClick: () => open(0),
      onKeyDown: (event) => {
        if (event.key === "Escape") close();
      },
    },
    box: isWanted && (
      <Suspense fallback={null}>
        <HintBox id={id} target={ref} opened={opened} label={label} />
      </Suspense>
    ),
  };
}

interface HintProps {
  /** What the hint says; nothing gives no hint. */
  label: ReactNode;
  disabled?: boolean;
  children: ReactNode;
  className?: string;
}

/** A text with a hint, reached by pointer, by touch and by keyboard. */
export function Hint({ label, disabled, className, children }: HintProps) {
  const dense = useContext(Dense);
  if (dense || disabled || !label)
    return className ? <span className={className}>{children}</span> : children;
  return (
    <Hinted label={label} className={className}>
      {children}
    </Hinted>
  );
}

function Hinted({ label, className, children }: Omit<HintProps, "disabled">) {
  const { ref, describedBy, handlers, box } = useHint<HTMLSpanElement>(label);
  return (
    <>
      <span
        ref={ref}
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a hint must be reachable by keyboard (WCAG 2.1.1)
        tabIndex={0}
        aria-describedby={describedBy}
        className={`${classes.hint} ${className ?? ""}`}
        {...handlers}
      >
        {children}
      </span>
      {box}
    </>
  );
}
