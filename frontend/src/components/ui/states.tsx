import { Button, Group } from "@mantine/core";
import type { ReactNode } from "react";
import { asApiError } from "@/api/problem";
import { CopyButton } from "./copy-button";
import { WrongIcon } from "./icons";
import classes from "./states.module.css";

/** A problem the server reported: title, detail, id, and a retry. */
export function ErrorState({
  error,
  onRetry,
  bare,
}: {
  error: unknown;
  onRetry?: () => void;
  bare?: boolean;
}) {
  const problem = asApiError(error);
  const [first] = problem.fieldErrors;
  // The server's sentence is about the first field: alone, it needs no list.
  const isSaid = problem.fieldErrors.length === 1 && problem.detail?.startsWith(`${first?.field}:`);
  const fields = isSaid ? [] : problem.fieldErrors;
  return (
    <div className={classes.box} role="alert" data-tone="error" data-bare={bare}>
      <p className={classes.title}>
        <span className={classes.mark}>
          <WrongIcon />
        </span>
        {problem.title}
      </p>
      {problem.detail && <p className={classes.text}>{problem.detail}</p>}
      {fields.length > 0 && (
        <ul className={classes.text}>
          {fields.map((entry) => (
            <li key={`${entry.field}:${entry.expected}`}>
              <span className="hp-mono">{entry.field}</span>: {entry.expected}
            </li>
          ))}
        </ul>
      )}
      {problem.requestId && (
        <Group gap={4} className={classes.text}>
          <span>
            Problem id <span className={classes.id}>{problem.requestId}</span>
          </span>
          <CopyButton text={problem.requestId} what="the problem id" />
        </Group>
      )}
      {onRetry && (
        <Button variant="default" size="sm" onClick={onRetry}>
          Try again
        </Button>
      )}
    </div>
  );
}

/** Whether the server says that an address names nothing: it is not there, or the id in it is none. Asking again is no use. */
export function isMissing(error: unknown): boolean {
  return error !== null && error !== undefined && [404, 410, 422].includes(asApiError(error).status);
}

/** An address that names nothing, and where to go from here. */
export function NotThere({ title, children }: { title: string; children: ReactNode }) {
  return (
    <div className={classes.box}>
      <h1 className={classes.title}>{title}</h1>
      <p className={classes.text}>
        Nothing has this address. It may have been deleted, or the address is cut off.
      </p>
      <Group gap="xs">{children}</Group>
    </div>
  );
}

/** Nothing is here yet, and what to do about it. */
export function EmptyState({
  title,
  children,
  bare,
}: {
  title: string;
  children?: ReactNode;
  bare?: boolean;
}) {
  return (
    <div className={classes.box} data-bare={bare}>
      <p className={classes.title}>{title}</p>
      {children}
    </div>
  );
}

/** Text inside a state box. */
export function StateText({ children }: { children: ReactNode }) {
  return <p className={classes.text}>{children}</p>;
}

/** Something is here, but the filters hide it all. */
export function NothingMatches({ what, onClear }: { what: string; onClear: () => void }) {
  return (
    <div className={classes.box}>
      <p className={classes.title}>Nothing matches</p>
      <p className={classes.text}>No {what} fits the filters that are set.</p>
      <Button variant="default" size="sm" onClick={onClear}>
        Clear filters
      </Button>
    </div>
  );
}
