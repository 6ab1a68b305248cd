import { Button, Group, Menu, Modal, Stack, Text, TextInput } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { useQuery } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { asApiError } from "@/api/problem";
import { scenariosQuery, useDeleteScenario, useSaveScenario } from "@/api/scenarios";
import type { Scenario } from "@/api/types";
import { ErrorState, StateText } from "@/components/ui/states";
import { formatRelative } from "@/lib/units";
import { NAME_CHARACTERS } from "@/search";

interface SavedScenariosProps {
  open: Scenario | null;
  nodeId: string | null;
  /** The form as it stands at this moment; the preview may still be behind it. */
  scenario: () => Record<string, unknown>;
  onOpen: (id: string) => void;
  onSaved: (scenario: Scenario) => void;
  onDeleted: () => void;
}

/** Opens a saved scenario, and saves the one on the page. An edit names the version it was read at. */
export function SavedScenarios({ open, nodeId, scenario, onOpen, onSaved, onDeleted }: SavedScenariosProps) {
  const list = useQuery(scenariosQuery());
  const save = useSaveScenario();
  const [asking, ask] = useDisclosure(false);
  const [name, setName] = useState("");
  const items = list.data?.items ?? [];

  const saveAs = (event: FormEvent) => {
    event.preventDefault();
    save.mutate(
      { name: name.trim(), nodeId, scenario: scenario() },
      {
        onSuccess: (saved) => {
          ask.close();
          onSaved(saved);
        },
      },
    );
  };
  const replace = () => {
    if (!open) return;
    save.mutate(
      { name: open.name, nodeId, scenario: scenario(), replace: { id: open.id, version: open.version } },
      { onSuccess: onSaved },
    );
  };
  const conflict = save.isError && asApiError(save.error).status === 412;
  return (
    <Group gap="xs">
      {items.length > 0 && (
        <Menu position="bottom-end" width={280}>
          <Menu.Target>
            <Button variant="default">Open a saved scenario</Button>
          </Menu.Target>
          <Menu.Dropdown mah={320}>
            {items.map((item) => (
              <Menu.Item key={item.id} onClick={() => onOpen(item.id)}>
                {item.name}
                <span className="hp-dim hp-small"> {formatRelative(item.updated_at, new Date())}</span>
              </Menu.Item>
            ))}
          </Menu.Dropdown>
        </Menu>
      )}
      {open && (
        <Button variant="default" onClick={replace} loading={save.isPending && !asking}>
          Save
        </Button>
      )}
      <Button variant="default" onClick={ask.open}>
        Save as
      </Button>
      {open && <DeleteScenario scenario={open} onDeleted={onDeleted} />}
      {conflict && !asking && (
        <Text role="alert" c="var(--hp-state-wrong)" size="sm">
          Somebody changed it since you opened it. Open it again, or save under another name.
        </Text>
      )}
      <Modal opened={asking} onClose={ask.close} title="Save this scenario">
        <form onSubmit={saveAs}>
          <Stack gap="sm">
            <TextInput
              label="Name"
              maxLength={NAME_CHARACTERS}
              value={name}
              onChange={(event) => setName(event.currentTarget.value)}
              required
              data-autofocus
            />
            <StateText>The scenario keeps the inputs. The plan is computed anew when it is opened.</StateText>
            {save.isError && <ErrorState error={save.error} bare />}
            <Button type="submit" loading={save.isPending}>
              Save
            </Button>
          </Stack>
        </form>
      </Modal>
    </Group>
  );
}

/** Asks once before a scenario is gone for good. */
function DeleteScenario({ scenario, onDeleted }: { scenario: Scenario; onDeleted: () => void }) {
  const remove = useDeleteScenario();
  const [asked, ask] = useState(false);
  if (!asked) {
    return (
      <Button variant="default" onClick={() => ask(true)}>
        Delete
      </Button>
    );
  }
  const detail = remove.isError ? asApiError(remove.error).detail : null;
  return (
    <>
      <Button
        color="red"
        loading={remove.isPending}
        onClick={() =>
          remove.mutate({ id: scenario.id, version: scenario.version }, { onSuccess: onDeleted })
        }
      >
        Delete {scenario.name} now
      </Button>
      {detail && (
        <Text role="alert" c="var(--hp-state-wrong)" size="sm">
          {detail}
        </Text>
      )}
    </>
  );
}
