import { CopyButton } from "@/components/ui/copy-button";
import classes from "./import.module.css";

/** What the command line prints, in its own columns. */
export function CommandText({ text }: { text: string }) {
  return (
    <>
      <CopyButton text={text} what="the text" />
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a box that scrolls must be reachable by keyboard */}
      <pre className={classes.text} tabIndex={0}>
        {text}
      </pre>
    </>
  );
}
