import { type ReactNode, useId, useState } from "react";
import { ChevronIcon } from "./disclosure";
import classes from "./question-card.module.css";

interface FoldCardProps {
  /** The finding: what a reader has to know also while the card is closed. */
  title: ReactNode;
  /** Open from the start. */
  open?: boolean;
  children: ReactNode;
}

/** A card that shows its finding, and the rest on request. What is closed is not in the page, and costs nothing. */
export function FoldCard({ title, open = false, children }: FoldCardProps) {
  const [isOpen, setOpen] = useState(open);
  const [id, panel] = [useId(), useId()];
  return (
    <section className={classes.card} aria-labelledby={id}>
      <h2 className={classes.title} id={id}>
        <button
          type="button"
          className={classes.fold}
          aria-expanded={isOpen}
          aria-controls={isOpen ? panel : undefined}
          onClick={() => setOpen(!isOpen)}
        >
          <ChevronIcon />
          {title}
        </button>
      </h2>
      {isOpen && (
        <div id={panel} className={classes.folded}>
          {children}
        </div>
      )}
    </section>
  );
}
