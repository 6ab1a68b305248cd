import { NativeSelect, Select, TextInput } from "@mantine/core";
import { memo, useCallback, useMemo } from "react";
import type { FieldErrors } from "@/api/field-errors";
import type { EngineInfo, EngineSetting, InstancePlan } from "@/api/types";
import { formatBytes, MIB } from "@/lib/units";
import type { DatabaseForm } from "../../draft/planner-form";
import {
  bareSizeText,
  settingBytes,
  settingText,
  sizeSuffix,
  sizeToStep,
  stepToSize,
} from "../../draft/pool-size";
import classes from "../planner-form.module.css";
import { splitSettings } from "./engine-settings";
import { WhatIfSlider } from "./what-if-slider";

/** A change of the newest state of one database. */
export type ChangeDatabase = (index: number, change: (newest: DatabaseForm) => Partial<DatabaseForm>) => void;

export interface SettingInputsProps {
  database: DatabaseForm;
  index: number;
  engine: EngineInfo | undefined;
  errors: FieldErrors;
  /** What the last plan said of this database: the size that holds while its field is empty. */
  planned: InstancePlan | undefined;
  /** The node's memory: no pool is larger. */
  memoryBytes: number;
  onChange: ChangeDatabase;
}

/** The settings of one engine: those in use, those that decide, and a way to add the others. */
export function SettingInputs(props: SettingInputsProps) {
  const { database, index, engine, errors, onChange } = props;
  // Which settings are shown depends on their names alone, so that a value costs its own field only.
  const names = Object.keys(database.settings).join("\n");
  const { shown, addable } = useMemo(() => splitSettings(engine, names.split("\n")), [engine, names]);
  const setSetting = useCallback(
    (name: string, value: string) =>
      onChange(index, (newest) => ({ settings: { ...newest.settings, [name]: value } })),
    [onChange, index],
  );
  return (
    <div className={classes.stack}>
      {shown.map((setting) => (
        <Setting
          key={setting.name}
          setting={setting}
          engine={engine}
          value={database.settings[setting.name] ?? ""}
          planned={database.settings[setting.name] ? undefined : props.planned}
          memoryBytes={props.memoryBytes}
          error={errors.at(`databases.${index}.settings.${setting.name}`)}
          onValue={setSetting}
        />
      ))}
      {addable.length > 0 && <AddSetting addable={addable} onValue={setSetting} />}
    </div>
  );
}

interface AddSettingProps {
  addable: readonly EngineSetting[];
  onValue: (name: string, value: string) => void;
}

const AddSetting = memo(function AddSetting({ addable, onValue }: AddSettingProps) {
  return (
    <Select
      aria-label="Add a setting"
      placeholder="Add a setting"
      searchable
      limit={60}
      size="xs"
      value={null}
      data={addable.map(({ name }) => name)}
      onChange={(name) => name && onValue(name, "")}
      nothingFoundMessage="No such setting"
    />
  );
});

interface SettingProps {
  setting: EngineSetting;
  engine: EngineInfo | undefined;
  value: string;
  /** What the last plan said of this database, while the field is empty. */
  planned: InstancePlan | undefined;
  memoryBytes: number;
  error: string | undefined;
  onValue: (name: string, value: string) => void;
}

const Setting = memo(function Setting(props: SettingProps) {
  const { setting, value, error, onValue } = props;
  return (
    <div>
      <SettingInput setting={setting} value={value} onValue={onValue} error={error} />
      <SettingSlider {...props} />
    </div>
  );
});

const MOST_CONNECTIONS = 2000;
const FEWEST_BYTES = 128 * MIB;
const stepText = (step: number) => formatBytes(stepToSize(step));

/** The pool's size and the connections can be tried out by hand. */
function SettingSlider({ setting, engine, value, planned, memoryBytes, onValue }: SettingProps) {
  const suffix = sizeSuffix(engine);
  const setSize = useCallback(
    (name: string, step: number) => onValue(name, settingText(stepToSize(step), suffix)),
    [onValue, suffix],
  );
  const setCount = useCallback((name: string, count: number) => onValue(name, String(count)), [onValue]);
  if (setting.name === engine?.pool_setting && setting.kind === "bytes") {
    const now = settingBytes(value, setting.unit_bytes) ?? planned?.demand.pool_bytes;
    return (
      <WhatIfSlider
        field={setting.name}
        label={`Try another ${setting.name}`}
        min={sizeToStep(FEWEST_BYTES)}
        max={sizeToStep(memoryBytes)}
        value={sizeToStep(now ?? FEWEST_BYTES)}
        format={stepText}
        onValue={setSize}
      />
    );
  }
  if (setting.name !== "max_connections") return null;
  return (
    <WhatIfSlider
      field={setting.name}
      label="Try another max_connections"
      min={10}
      max={MOST_CONNECTIONS}
      step={10}
      value={Number(value) || planned?.demand.connections || 100}
      format={String}
      onValue={setCount}
    />
  );
}

interface SettingInputProps {
  setting: EngineSetting;
  value: string;
  error: string | undefined;
  onValue: (name: string, value: string) => void;
}

/** One setting, verbatim; a list where the engine knows the words. */
function SettingInput({ setting, value, error, onValue }: SettingInputProps) {
  const common = {
    label: <span className="hp-mono">{setting.name}</span>,
    description:
      (setting.kind === "bytes" && bareSizeText(value, setting.unit_bytes)) || setting.summary || undefined,
    inputWrapperOrder: ["label", "input", "description", "error"] as (
      | "label"
      | "input"
      | "description"
      | "error"
    )[],
    value,
    error,
  };
  const byDefault = setting.default === null ? "engine's own" : `${setting.default} (default)`;
  if (setting.choices.length > 0) {
    const isListed = value === "" || setting.choices.includes(value);
    return (
      <NativeSelect
        {...common}
        data={[{ value: "", label: byDefault }, ...setting.choices, ...(isListed ? [] : [value])]}
        onChange={(event) => onValue(setting.name, event.currentTarget.value)}
      />
    );
  }
  return (
    <TextInput
      {...common}
      placeholder={byDefault}
      onChange={(event) => onValue(setting.name, event.currentTarget.value)}
      spellCheck={false}
      autoComplete="off"
    />
  );
}
