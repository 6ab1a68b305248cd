import { type ReactNode, useId } from "react";
import classes from "./question-card.module.css";

interface QuestionCardProps {
  /** A finding or a question, never a noun. */
  title: ReactNode;
  description?: ReactNode;
  actions?: ReactNode;
  children: ReactNode;
}

/** The card every view is made of: a section named by its finding. */
export function QuestionCard({ title, description, actions, children }: QuestionCardProps) {
  const id = useId();
  return (
    <section className={classes.card} aria-labelledby={id}>
      <div className={classes.header}>
        <div className={classes.titles}>
          <h2 id={id} className={classes.title}>
            {title}
          </h2>
          {description && <p className={classes.description}>{description}</p>}
        </div>
        {actions}
      </div>
      {children}
    </section>
  );
}
