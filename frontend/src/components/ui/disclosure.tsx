import { Accordion } from "@mantine/core";
import type { ReactNode } from "react";
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
  return (
    <Accordion
      variant="default"
      chevronPosition="left"
      chevronSize={20}
      transitionDuration={0}
      keepMounted={false}
      defaultValue={open ? "open" : null}
      classNames={classes}
    >
      <Accordion.Item value="open">
        <Accordion.Control>{label}</Accordion.Control>
        <Accordion.Panel>{children}</Accordion.Panel>
      </Accordion.Item>
    </Accordion>
  );
}
