import { ActionIcon, Button } from "@mantine/core";
import { useClipboard } from "@mantine/hooks";
import { CheckIcon, CopyIcon } from "./icons";

/** Copies exactly what a shell or a file wants. With `label` it is a button with text, else an icon. */
export function CopyButton({ text, what, label }: { text: string; what: string; label?: string }) {
  const clipboard = useClipboard({ timeout: 1500 });
  const done = clipboard.copied;
  if (label) {
    return (
      <Button
        variant="default"
        size="compact-sm"
        leftSection={done ? <CheckIcon /> : <CopyIcon />}
        onClick={() => clipboard.copy(text)}
        aria-label={done ? `Copied ${what}` : `Copy ${what}`}
      >
        {done ? "Copied" : label}
      </Button>
    );
  }
  return (
    <ActionIcon
      variant="subtle"
      size="sm"
      title={done ? "Copied" : `Copy ${what}`}
      onClick={() => clipboard.copy(text)}
      aria-label={done ? `Copied ${what}` : `Copy ${what}`}
    >
      {done ? <CheckIcon /> : <CopyIcon />}
    </ActionIcon>
  );
}
