import { type ReactNode, useEffect } from "react";
import classes from "./page-header.module.css";

interface PageHeaderProps {
  title: string;
  crumbs?: ReactNode;
  /** The first line: what should be done, in words with a number. */
  headline?: ReactNode;
  actions?: ReactNode;
}

/** The top of every page; it also names the browser's tab. */
export function PageHeader({ title, crumbs, headline, actions }: PageHeaderProps) {
  useEffect(() => {
    document.title = `${title} - hugeplan`;
  }, [title]);
  return (
    <header className={classes.header}>
      <div>
        {crumbs && (
          <nav className={classes.crumbs} aria-label="Breadcrumbs">
            {crumbs}
          </nav>
        )}
        <h1 className={classes.title}>{title}</h1>
        {headline && <p className={classes.headline}>{headline}</p>}
      </div>
      {actions}
    </header>
  );
}
