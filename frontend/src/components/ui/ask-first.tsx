import { Button, Group, Modal, Stack } from "@mantine/core";
import type { ReactNode } from "react";
import { ErrorState, StateText } from "@/components/ui/states";

interface AskFirstProps {
  title: string;
  /** The words of the buttons: what is kept, and what is done. */
  keep: string;
  act: string;
  isPending: boolean;
  error: unknown;
  onClose: () => void;
  onAct: () => void;
  children: ReactNode;
}

/** Asks in a dialog of its own, where a second click of a double click hits nothing. */
export function AskFirst({ title, keep, act, isPending, error, onClose, onAct, children }: AskFirstProps) {
  return (
    <Modal closeOnClickOutside={false} opened onClose={onClose} title={title}>
      <Stack gap="sm">
        <StateText>{children}</StateText>
        {error !== null && error !== undefined && <ErrorState error={error} bare />}
        <Group gap="xs">
          <Button variant="default" onClick={onClose} data-autofocus>
            {keep}
          </Button>
          <Button color="red" loading={isPending} onClick={onAct}>
            {act}
          </Button>
        </Group>
      </Stack>
    </Modal>
  );
}
