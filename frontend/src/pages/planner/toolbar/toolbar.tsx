import { ActionIcon, Button, Group, Menu, Modal, Stack, Text, TextInput } from "@mantine/core";
import { useClipboard, useDisclosure } from "@mantine/hooks";
import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { type FormEvent, useState } from "react";
import { asApiError } from "@/api/problem";
import { scenarioQuery, scenariosQuery, useDeleteScenario, useSaveScenario } from "@/api/scenarios";
import type { Scenario } from "@/api/types";
import { RedoIcon, UndoIcon } from "@/components/ui/icons";
import { ErrorState, StateText } from "@/components/ui/states";
import { formatRelative } from "@/lib/units";
import { useNow } from "@/lib/use-now";
import { NAME_CHARACTERS } from "@/search";
import type { Draft } from "../draft/draft";
import classes from "./toolbar.module.css";

export interface ToolbarProps {
  /** The version that the form rests on; null for a scenario that was never saved. */
  base: Scenario | null;
  /** The newest version that the server is known to have. */
  stored: Scenario | null;
  isDirty: boolean;
  mayPlan: boolean;
  /** What stands in the form when it is asked for: the toolbar is not drawn anew for each key. */
  current: () => { draft: Draft; scenario: Record<string, unknown> };
  /** The address with everything that stands in the form. */
  address: () => string;
  canUndo: boolean;
  canRedo: boolean;
  onUndo: () => void;
  onRedo: () => void;
  onSaved: (scenario: Scenario) => void;
  /** Gives up the edits for the version given. */
  onLoad: (scenario: Scenario) => void;
  /** Empties the form of a scenario that was never saved. */
  onNew: () => void;
  isComparing: boolean;
  onCompare: () => void;
}

/** What a scenario is saved under a name for. */
type SaveFor = "itself" | "the fleet";

/** What can be done with the scenario as a whole. Who may not save sees no control for it. */
export function Toolbar(props: ToolbarProps) {
  const { base, isDirty, mayPlan, current, onSaved } = props;
  const navigate = useNavigate({ from: "/planner" });
  const save = useSaveScenario();
  const clipboard = useClipboard({ timeout: 1500 });
  const [asked, ask] = useState<SaveFor | null>(null);
  const saveAs = () => ask("itself");
  const replace = (version: number, then = onSaved) => {
    if (!base) return;
    const { draft, scenario } = current();
    save.mutate(
      { name: base.name, nodeId: draft.nodeId, scenario, replace: { id: base.id, version } },
      { onSuccess: then },
    );
  };
  const openFleetPlan = ({ id }: Scenario) => void navigate({ to: "/fleet-plans", search: { saved: id } });
  // A fleet plan is made of a saved scenario, so that it can be told later what was planned.
  const planFleet = () => {
    if (!base) ask("the fleet");
    else if (!isDirty) openFleetPlan(base);
    else
      replace(base.version, (saved) => {
        onSaved(saved);
        openFleetPlan(saved);
      });
  };
  return (
    <div className={classes.bar}>
      <Group gap={6} justify="flex-end" className={classes.buttons}>
        <DirtyMark base={base} isDirty={isDirty} />
        <Steps {...props} />
        <OpenMenu base={base} onNew={props.onNew} />
        <Button variant="default" size="sm" aria-pressed={props.isComparing} onClick={props.onCompare}>
          Compare
        </Button>
        <Button variant="default" size="sm" onClick={() => clipboard.copy(props.address())}>
          {clipboard.copied ? "Link copied" : "Share"}
        </Button>
        {mayPlan && (
          <Button variant="default" size="sm" onClick={planFleet}>
            Plan the fleet
          </Button>
        )}
        {mayPlan && base && <DeleteScenario scenario={base} />}
        {mayPlan && base && (
          <Button variant="default" size="sm" onClick={saveAs}>
            Save as
          </Button>
        )}
        {mayPlan && (
          <Button
            variant="default"
            size="sm"
            onClick={() => (base ? replace(base.version) : saveAs())}
            loading={save.isPending}
            disabled={base !== null && !isDirty}
          >
            Save
          </Button>
        )}
      </Group>
      {!mayPlan && <Text className={classes.note}>Your role may try plans and not save them.</Text>}
      {save.isError && <SaveFailed {...props} error={save.error} onOverwrite={replace} onSaveAs={saveAs} />}
      {!save.isError && <NewerVersion {...props} />}
      <SaveAs
        opened={asked !== null}
        why={asked === "the fleet" ? "A fleet plan is made of a saved scenario." : undefined}
        onClose={() => ask(null)}
        current={current}
        suggestion={base ? `${base.name} (copy)` : ""}
        onSaved={(saved) =>
          asked === "the fleet" ? openFleetPlan(saved) : void navigate({ search: { saved: saved.id } })
        }
      />
    </div>
  );
}

function DirtyMark({ base, isDirty }: Pick<ToolbarProps, "base" | "isDirty">) {
  if (!base) return isDirty ? <Text className={classes.note}>Edited; the address keeps it.</Text> : null;
  if (!isDirty) return <Text className={classes.note}>Saved, version {base.version}.</Text>;
  return (
    <Text className={classes.dirty}>
      <span className={classes.dot} aria-hidden="true" />
      Unsaved changes, kept in the address
    </Text>
  );
}

function Steps({ canUndo, canRedo, onUndo, onRedo }: ToolbarProps) {
  return (
    <ActionIcon.Group>
      <ActionIcon
        variant="default"
        size="lg"
        aria-label="Undo"
        title="Undo (Ctrl+Z)"
        disabled={!canUndo}
        onClick={onUndo}
      >
        <UndoIcon />
      </ActionIcon>
      <ActionIcon
        variant="default"
        size="lg"
        aria-label="Redo"
        title="Redo (Ctrl+Y)"
        disabled={!canRedo}
        onClick={onRedo}
      >
        <RedoIcon />
      </ActionIcon>
    </ActionIcon.Group>
  );
}

function OpenMenu({ base, onNew }: Pick<ToolbarProps, "base" | "onNew">) {
  const navigate = useNavigate({ from: "/planner" });
  const list = useQuery(scenariosQuery());
  const now = useNow();
  const items = list.data?.items ?? [];
  return (
    <Menu position="bottom-end" width={300}>
      <Menu.Target>
        <Button variant="default" size="sm">
          Open
        </Button>
      </Menu.Target>
      <Menu.Dropdown mah={360} className={classes.menu}>
        <Menu.Item onClick={() => (base ? void navigate({ search: {} }) : onNew())}>New scenario</Menu.Item>
        <Menu.Divider />
        {list.isError && <ErrorState error={list.error} onRetry={() => void list.refetch()} bare />}
        {list.data && items.length === 0 && <Menu.Label>No scenario is saved yet.</Menu.Label>}
        {items.map((item) => (
          <Menu.Item key={item.id} onClick={() => void navigate({ search: { saved: item.id } })}>
            <span className="hp-anywhere">{item.name}</span>{" "}
            <span className="hp-dim hp-small">{formatRelative(item.updated_at, now)}</span>
          </Menu.Item>
        ))}
      </Menu.Dropdown>
    </Menu>
  );
}

interface SaveFailedProps extends ToolbarProps {
  error: unknown;
  onOverwrite: (version: number) => void;
  onSaveAs: () => void;
}

/** Why nothing was saved, and the ways on. The edits stay in the form and in the address. */
function SaveFailed({ error, base, onLoad, onOverwrite, onSaveAs }: SaveFailedProps) {
  const problem = asApiError(error);
  const newest = useQuery({
    ...scenarioQuery(base?.id ?? ""),
    enabled: problem.status === 412 && base !== null,
    staleTime: 0,
  });
  if (problem.status !== 412) {
    return (
      <div className={classes.failed}>
        <Text fw={600}>Not saved. Your changes are still here.</Text>
        <ErrorState error={error} bare />
      </div>
    );
  }
  const theirs = newest.data;
  return (
    <div className={classes.failed} role="alert">
      <Text>
        Not saved: somebody changed this scenario since you opened it
        {theirs ? ` (version ${theirs.version})` : ""}. Your changes are still here.
      </Text>
      <Group gap="xs">
        {theirs && (
          <Button size="compact-sm" variant="default" onClick={() => onLoad(theirs)}>
            Load version {theirs.version}, drop mine
          </Button>
        )}
        {theirs && (
          <Button size="compact-sm" variant="default" onClick={() => onOverwrite(theirs.version)}>
            Overwrite with mine
          </Button>
        )}
        <Button size="compact-sm" variant="default" onClick={onSaveAs}>
          Save mine under another name
        </Button>
      </Group>
    </div>
  );
}

function NewerVersion({ base, stored, isDirty, onLoad }: ToolbarProps) {
  if (!base || !stored || stored.id !== base.id || stored.version <= base.version) return null;
  return (
    <div className={classes.failed} role="status">
      <Group gap="xs">
        <Text>
          Version {stored.version} was saved meanwhile.{isDirty ? " Your changes are kept." : ""}
        </Text>
        <Button size="compact-sm" variant="default" onClick={() => onLoad(stored)}>
          Load it
        </Button>
      </Group>
    </div>
  );
}

interface SaveAsProps {
  opened: boolean;
  /** Why it has to be saved, where that was not what was asked for. */
  why: string | undefined;
  onClose: () => void;
  current: ToolbarProps["current"];
  suggestion: string;
  onSaved: (scenario: Scenario) => void;
}

function SaveAs({ opened, why, onClose, current, suggestion, onSaved }: SaveAsProps) {
  const save = useSaveScenario();
  const [name, setName] = useState<string | null>(null);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    const { draft, scenario } = current();
    save.mutate(
      { name: (name ?? suggestion).trim(), nodeId: draft.nodeId, scenario },
      {
        onSuccess: (saved) => {
          onSaved(saved);
          onClose();
        },
      },
    );
  };
  return (
    <Modal opened={opened} onClose={onClose} title="Save this scenario">
      <form onSubmit={submit}>
        <Stack gap="sm">
          <TextInput
            label="Name"
            maxLength={NAME_CHARACTERS}
            value={name ?? suggestion}
            onChange={(event) => setName(event.currentTarget.value)}
            required
            data-autofocus
          />
          <StateText>{why} The inputs are saved. The plan is computed from them each time.</StateText>
          {save.isError && <ErrorState error={save.error} bare />}
          <Button type="submit" loading={save.isPending}>
            Save
          </Button>
        </Stack>
      </form>
    </Modal>
  );
}

/** Asks in a dialog of its own, so that a double click deletes nothing. */
function DeleteScenario({ scenario }: { scenario: Scenario }) {
  const navigate = useNavigate({ from: "/planner" });
  const remove = useDeleteScenario();
  const [asked, ask] = useDisclosure(false);
  return (
    <>
      <Button variant="default" size="sm" onClick={ask.open}>
        Delete
      </Button>
      <Modal
        closeOnClickOutside={false}
        opened={asked}
        onClose={ask.close}
        title={`Delete ${scenario.name}?`}
      >
        <Stack gap="sm">
          <StateText>
            The scenario and its drafts are deleted for good. Plans that were proposed stay.
          </StateText>
          {remove.isError && <ErrorState error={remove.error} bare />}
          <Group gap="xs">
            <Button variant="default" onClick={ask.close} data-autofocus>
              Keep it
            </Button>
            <Button
              color="red"
              loading={remove.isPending}
              onClick={() =>
                remove.mutate(
                  { id: scenario.id, version: scenario.version },
                  { onSuccess: () => void navigate({ search: {} }) },
                )
              }
            >
              Delete {scenario.name}
            </Button>
          </Group>
        </Stack>
      </Modal>
    </>
  );
}
