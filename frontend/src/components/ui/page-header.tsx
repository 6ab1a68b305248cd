import { Breadcrumbs } from "@mantine/core";
import { type ReactNode, useEffect } from "react";
import classes from "./page-header.module.css";

interface PageHeaderProps {
  title: string;
  /** A mark beside the title. */
  badge?: ReactNode;
  /** Where the page stands, from the outermost page on. */
  crumbs?: readonly ReactNode[];
  /** The first line: what should be done, in words with a number. */
  headline?: ReactNode;
  actions?: ReactNode;
}

/** The top of every page; it also names the browser's tab. */
export function PageHeader({ title, badge, crumbs, headline, actions }: PageHeaderProps) {
  useEffect(() => {
    document.title = `${title} - hugeplan`;
  }, [title]);
  return (
    <header className={classes.header}>
      <div className={classes.words}>
        {crumbs && (
          <nav aria-label="Breadcrumbs">
            <Breadcrumbs classNames={{ root: classes.crumbs, breadcrumb: classes.crumb }} separatorMargin={6}>
              {crumbs}
            </Breadcrumbs>
          </nav>
        )}
        <div className={classes.titleLine}>
          <h1 className={classes.title} title={title.length > 60 ? title : undefined}>
            {title}
          </h1>
          {badge}
        </div>
        {headline && <p className={classes.headline}>{headline}</p>}
      </div>
      {actions}
    </header>
  );
}
