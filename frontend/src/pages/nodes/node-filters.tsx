import { Select, TextInput } from "@mantine/core";
import { useDebouncedCallback } from "@mantine/hooks";
import { useEffect, useState } from "react";
import type { FleetSummary } from "@/api/types";
import { SearchIcon } from "@/components/ui/icons";
import { NAME_CHARACTERS, type NodeSelection } from "@/search";
import { selectionChips } from "./filter-chips";
import classes from "./nodes-page.module.css";

const TYPING_MS = 250;

interface NodeFiltersProps {
  selection: NodeSelection;
  /** The whole fleet in figures: what there is to choose from. */
  fleet: FleetSummary | undefined;
  onChange: (change: Partial<NodeSelection>) => void;
}

/** Every condition that the server can select by; each change asks the server again. */
export function NodeFilters({ selection, fleet, onChange }: NodeFiltersProps) {
  const { machine_type: machine, finding, state, plan_state: plan, stale } = selection;
  const problem = finding || state ? `${finding ?? ""}:${state ?? ""}` : undefined;
  const machines = named((fleet?.parts ?? []).flatMap(({ key }) => key ?? []));
  return (
    <div className={classes.filters}>
      <TypedInput
        label="Search by name"
        value={selection.q ?? ""}
        most={NAME_CHARACTERS}
        onChange={(q) => onChange({ q: q || undefined })}
      />
      <Select
        label="Problems"
        placeholder="With and without"
        clearable
        data={withChosen(
          [
            { value: ":wrong", label: "Anything wrong" },
            { value: ":attention", label: "Anything for attention" },
            ...(fleet?.findings ?? []).map(({ code, state: found, title }) => ({
              value: `${code}:${found}`,
              label: title,
            })),
          ],
          problem,
        )}
        value={problem ?? null}
        onChange={(value) => {
          const [code, found] = (value ?? ":").split(":");
          onChange({
            finding: code || undefined,
            state: (found || undefined) as NodeSelection["state"],
          });
        }}
      />
      <Select
        label="Machine type"
        placeholder="All"
        clearable
        searchable
        data={withChosen(machines, machine)}
        value={machine ?? null}
        onChange={(value) => onChange({ machine_type: value ?? undefined })}
      />
      <Select
        label="Plan in force"
        placeholder="All"
        clearable
        data={[
          { value: "short", label: "Pages are missing" },
          { value: "idle", label: "More pages than planned" },
          { value: "drifted", label: "Both, by pool" },
          { value: "match", label: "As planned" },
          { value: "none", label: "No plan" },
        ]}
        value={plan ?? null}
        onChange={(value) => onChange({ plan_state: (value ?? undefined) as NodeSelection["plan_state"] })}
      />
      <Select
        label="Reports"
        placeholder="All"
        clearable
        data={[
          { value: "false", label: "Reporting" },
          { value: "true", label: "Not reporting" },
        ]}
        value={stale === undefined ? null : String(stale)}
        onChange={(value) => onChange({ stale: value === null ? undefined : value === "true" })}
      />
      <TypedInput
        label="Labels"
        placeholder="env=prod, role"
        value={(selection.label ?? []).join(", ")}
        most={1000}
        asKept={(text) => (labelsOf(text) ?? []).join(", ")}
        onChange={(text) => onChange({ label: labelsOf(text) })}
      />
    </div>
  );
}

/** What is asked for, one chip per condition, each of which can be taken away: some have no field of their own. */
export function FilterChips({ selection, fleet, onChange }: NodeFiltersProps) {
  const chips = selectionChips(selection, fleet);
  if (chips.length === 0) return null;
  return (
    <ul className={classes.chips} aria-label="Filters that are set">
      {chips.map(({ key, text, without }) => (
        <li key={key}>
          <button
            type="button"
            className={classes.chip}
            aria-label={`Remove the filter ${text}`}
            onClick={() => onChange(without)}
          >
            {text} <span aria-hidden="true">×</span>
          </button>
        </li>
      ))}
    </ul>
  );
}

/** Labels as a reader types them: separated by commas; at most 16 of 256 characters, as the server takes them. */
export function labelsOf(text: string): string[] | undefined {
  const labels = text
    .split(",")
    .map((label) => label.trim().slice(0, 256))
    .filter(Boolean);
  return labels.length > 0 ? labels.slice(0, 16) : undefined;
}

const named = (values: readonly string[]) => values.map((value) => ({ value, label: value }));

/** A choice of the address that the fleet no longer has stays visible, or nobody could see why nothing matches. */
function withChosen(data: { value: string; label: string }[], chosen: string | undefined) {
  return chosen === undefined || data.some(({ value }) => value === chosen)
    ? data
    : [...data, { value: chosen, label: chosen }];
}

const trimmed = (text: string) => text.trim();

interface TypedInputProps {
  label: string;
  placeholder?: string;
  value: string;
  most: number;
  /** How the address keeps what is typed: "env=prod," is kept as "env=prod", and still stands in the field. */
  asKept?: (text: string) => string;
  onChange: (text: string) => void;
}

/** A text that is passed on when the reader pauses; a change from outside (back, clear) replaces it. */
function TypedInput({ label, placeholder, value, most, asKept = trimmed, onChange }: TypedInputProps) {
  const [text, setText] = useState(value);
  const [sent, setSent] = useState(value);
  const send = useDebouncedCallback((next: string) => {
    setSent(asKept(next));
    onChange(next.trim());
  }, TYPING_MS);
  useEffect(() => {
    if (value !== sent) {
      setText(value);
      setSent(value);
    }
  }, [value, sent]);
  return (
    <TextInput
      label={label}
      placeholder={placeholder}
      leftSection={<SearchIcon />}
      value={text}
      maxLength={most}
      onChange={(event) => {
        setText(event.currentTarget.value);
        send(event.currentTarget.value);
      }}
    />
  );
}
