import classes from "./command-line.module.css";
import { CopyButton } from "./copy-button";

/** A command to run, with its copy button. */
export function CommandLine({ command, what = "the command" }: { command: string; what?: string }) {
  return (
    <div className={classes.box}>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a box that scrolls must be reachable by keyboard */}
      <code className={classes.text} tabIndex={0}>
        {command}
      </code>
      <CopyButton text={command} what={what} />
    </div>
  );
}
