import { Popover, Text } from "@mantine/core";
import { useId } from "react";
import { GLOSSARY, type TermName } from "./glossary";
import classes from "./term.module.css";

interface TermBoxProps {
  name: TermName;
  opened: boolean;
  onChange: (opened: boolean) => void;
}

/** The explanation of a term, beside it. Escape and a click elsewhere close it. */
export default function TermBox({ name, opened, onChange }: TermBoxProps) {
  const { title, text, source } = GLOSSARY[name];
  const textId = useId();
  const url = "url" in source ? source.url : null;
  return (
    <Popover
      opened={opened}
      onChange={onChange}
      position="bottom-start"
      width={300}
      shadow="md"
      withRoles={false}
      trapFocus
      hideDetached={false}
      transitionProps={{ duration: 0 }}
    >
      <Popover.Target>
        <span className={classes.anchor} />
      </Popover.Target>
      <Popover.Dropdown role="dialog" aria-label={title} aria-describedby={textId} tabIndex={-1}>
        <Text component="div" size="sm" fw={400} ta="left" tt="none">
          <p className={classes.title}>{title}</p>
          <p className={classes.text} id={textId}>
            {text}
          </p>
          Source:{" "}
          {url === null ? (
            source.text
          ) : (
            <a href={url} className="hp-anchor" target="_blank" rel="noreferrer noopener">
              {source.text}
            </a>
          )}
        </Text>
      </Popover.Dropdown>
    </Popover>
  );
}
