import { ActionIcon, NativeSelect, Select, Textarea, TextInput } from "@mantine/core";
import type { EngineInfo, EngineSetting, InstancePlan, Plan } from "@/api/types";
import { SourceBadge } from "@/components/ui/badges";
import { Disclosure } from "@/components/ui/disclosure";
import { TrashIcon } from "@/components/ui/icons";
import type { FieldErrors } from "@/lib/field-errors";
import { formatBytes, GIB, KIB, MIB } from "@/lib/units";
import { splitSettings } from "./engine-settings";
import { NumaNodeInput } from "./numa-node-input";
import { type DatabaseForm, TABLE_CHARACTERS } from "./planner-form";
import classes from "./planner-form.module.css";
import { settingBytes, settingText, sizeSuffix, sizeToStep, stepToSize } from "./pool-size";
import { WhatIfSlider } from "./what-if-slider";

interface DatabaseInputsProps {
  database: DatabaseForm;
  index: number;
  engines: readonly EngineInfo[];
  hugePageSizes: readonly number[];
  numaNodes: number;
  errors: FieldErrors;
  plan: Plan | null;
  /** The node's memory: no pool is larger. */
  memoryBytes: number;
  kubernetes: boolean;
  onChange: (database: DatabaseForm) => void;
  onRemove: () => void;
}

/** A size as a scenario writes it: no space, so that it can be pasted anywhere. */
function plainSize(bytes: number): string {
  const [unit, name] = bytes % GIB === 0 ? [GIB, "GiB"] : bytes % MIB === 0 ? [MIB, "MiB"] : [KIB, "KiB"];
  return `${bytes / (unit as number)}${name}`;
}

/** One database instance: engine, its settings as the engine spells them, and what it does. */
export function DatabaseInputs(props: DatabaseInputsProps) {
  const { database, index, engines, errors, onChange, onRemove } = props;
  const engine = engines.find(({ name }) => name === database.engine);
  const at = (field: string) => errors.at(`databases.${index}.${field}`);
  const set = (change: Partial<DatabaseForm>) => onChange({ ...database, ...change });
  return (
    <fieldset className={classes.item} aria-label={`Database ${database.name || index + 1}`}>
      <div className={classes.head}>
        <TextInput
          label="Name"
          value={database.name}
          onChange={(event) => set({ name: event.currentTarget.value })}
          error={at("name")}
        />
        <Select
          label="Engine"
          searchable
          allowDeselect={false}
          data={engines.map(({ name, title }) => ({ value: name, label: title }))}
          value={database.engine || null}
          onChange={(value) =>
            value && set({ engine: value, version: undefined, settings: {}, runs_as: undefined })
          }
          error={at("engine")}
        />
        <ActionIcon
          variant="subtle"
          className={classes.remove}
          onClick={onRemove}
          aria-label={`Remove the database ${database.name}`}
        >
          <TrashIcon />
        </ActionIcon>
      </div>
      {database.runs_as && (
        <div className={classes.observed}>
          <SourceBadge source="measured" detail={`It runs on this node as ${database.runs_as}.`} />
          as it runs today
        </div>
      )}
      <SettingInputs {...props} engine={engine} />
      <div className={classes.pair}>
        <NativeSelect
          label="Version"
          data={[
            { value: "", label: engine?.versions[0] ? `Newest (${engine.versions[0]})` : "Default" },
            ...(engine?.versions ?? []).map((version) => ({ value: version, label: version })),
          ]}
          value={database.version ?? ""}
          onChange={(event) => set({ version: event.currentTarget.value })}
          error={at("version")}
        />
        <NativeSelect
          label="Page size"
          data={[
            { value: "", label: "Automatic" },
            { value: "none", label: "No huge pages" },
            ...props.hugePageSizes.map((size) => ({ value: plainSize(size), label: formatBytes(size) })),
          ]}
          value={database.page_size ?? ""}
          onChange={(event) => set({ page_size: event.currentTarget.value })}
          error={at("page_size")}
        />
      </div>
      <NumaNodeInput
        count={props.numaNodes}
        value={database.numa_node}
        onChange={(value) => set({ numa_node: value })}
        error={at("numa_node")}
      />
      <WorkloadInputs {...props} />
    </fieldset>
  );
}

function SettingInputs(props: DatabaseInputsProps & { engine: EngineInfo | undefined }) {
  const { database, index, engine, errors, onChange } = props;
  const { shown, addable } = splitSettings(engine, database.settings);
  const setSetting = (name: string, value: string) =>
    onChange({ ...database, settings: { ...database.settings, [name]: value } });
  return (
    <div className={classes.stack}>
      {shown.map((setting) => (
        <div key={setting.name}>
          <SettingInput
            setting={setting}
            value={database.settings[setting.name] ?? ""}
            onChange={(value) => setSetting(setting.name, value)}
            error={errors.at(`databases.${index}.settings.${setting.name}`)}
          />
          <SettingSlider
            setting={setting}
            isPool={setting.name === engine?.pool_setting}
            value={database.settings[setting.name] ?? ""}
            planned={props.plan?.instances.find(({ name }) => name === database.name.trim())}
            memoryBytes={props.memoryBytes}
            suffix={sizeSuffix(engine)}
            onChange={(value) => setSetting(setting.name, value)}
          />
        </div>
      ))}
      {addable.length > 0 && (
        <Select
          aria-label="Add a setting"
          placeholder="Add a setting"
          searchable
          limit={60}
          size="xs"
          value={null}
          data={addable.map(({ name }) => name)}
          onChange={(name) => name && setSetting(name, "")}
          nothingFoundMessage="No such setting"
        />
      )}
    </div>
  );
}

interface SettingSliderProps {
  setting: EngineSetting;
  isPool: boolean;
  value: string;
  /** What the last plan said of this database: the size that holds while the field is empty. */
  planned: InstancePlan | undefined;
  memoryBytes: number;
  suffix: string;
  onChange: (value: string) => void;
}

const MOST_CONNECTIONS = 2000;

/** The pool's size and the connections can be tried out by hand. */
function SettingSlider({
  setting,
  isPool,
  value,
  planned,
  memoryBytes,
  suffix,
  onChange,
}: SettingSliderProps) {
  if (isPool && setting.kind === "bytes") {
    const now = settingBytes(value, setting.unit_bytes) ?? planned?.demand.pool_bytes;
    return (
      <WhatIfSlider
        label={`Try another ${setting.name}`}
        min={sizeToStep(128 * MIB)}
        max={sizeToStep(memoryBytes)}
        value={sizeToStep(now ?? 128 * MIB)}
        format={(step) => formatBytes(stepToSize(step))}
        onChange={(step) => onChange(settingText(stepToSize(step), suffix))}
      />
    );
  }
  if (setting.name !== "max_connections") return null;
  return (
    <WhatIfSlider
      label="Try another max_connections"
      min={10}
      max={MOST_CONNECTIONS}
      step={10}
      value={Number(value) || planned?.demand.connections || 100}
      format={(count) => String(count)}
      onChange={(count) => onChange(String(count))}
    />
  );
}

interface SettingInputProps {
  setting: EngineSetting;
  value: string;
  error: string | undefined;
  onChange: (value: string) => void;
}

/** One setting, verbatim; a list where the engine knows the words. */
function SettingInput({ setting, value, error, onChange }: SettingInputProps) {
  const common = {
    label: <span className="hp-mono">{setting.name}</span>,
    description: setting.summary || undefined,
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
        onChange={(event) => onChange(event.currentTarget.value)}
      />
    );
  }
  return (
    <TextInput
      {...common}
      placeholder={byDefault}
      onChange={(event) => onChange(event.currentTarget.value)}
      spellCheck={false}
      autoComplete="off"
    />
  );
}

function WorkloadInputs({ database, index, errors, kubernetes, onChange }: DatabaseInputsProps) {
  const at = (field: string) => errors.at(`databases.${index}.${field}`);
  const workload = database.workload ?? {};
  const set = (change: Partial<DatabaseForm>) => onChange({ ...database, ...change });
  const input = (field: keyof typeof workload, label: string, placeholder: string) => (
    <TextInput
      label={label}
      placeholder={placeholder}
      value={workload[field] ?? ""}
      onChange={(event) => set({ workload: { ...workload, [field]: event.currentTarget.value } })}
      error={at(`workload.${field}`)}
    />
  );
  return (
    <Disclosure label="Connections, workload and pool range">
      <div className={classes.stack}>
        <div className={classes.pair}>
          <TextInput
            label="Connections"
            description="Open at peak"
            placeholder="from the settings"
            value={database.connections ?? ""}
            onChange={(event) => set({ connections: event.currentTarget.value })}
            error={at("connections")}
          />
          {input("active_connections", "Active at once", "unknown")}
        </div>
        <div className={classes.pair}>
          <TextInput
            label="Smallest pool"
            description="Lets the planner choose"
            placeholder="not a range"
            value={database.pool_min ?? ""}
            onChange={(event) => set({ pool_min: event.currentTarget.value })}
            error={at("pool_range.min") ?? at("pool_range")}
          />
          <TextInput
            label="Largest pool"
            description="within this range"
            placeholder="such as 16GiB"
            value={database.pool_max ?? ""}
            onChange={(event) => set({ pool_max: event.currentTarget.value })}
            error={at("pool_range.max")}
          />
        </div>
        <div className={classes.pair}>
          {input("row_bytes", "Row width in bytes", "unknown")}
          {input("working_set", "Working set", "such as 6GiB")}
        </div>
        {input(
          "operations_per_second_per_busy_core",
          "Operations per second per busy core",
          "unknown: gives a wider range",
        )}
        <Textarea
          label="Measured throughput by pool size"
          description="Paste two columns. Four sizes or more make a curve."
          placeholder={"8GiB, 12000\n16GiB, 17500"}
          autosize
          minRows={2}
          maxRows={8}
          maxLength={TABLE_CHARACTERS}
          spellCheck={false}
          value={workload.benefit_table ?? ""}
          onChange={(event) => set({ workload: { ...workload, benefit_table: event.currentTarget.value } })}
          error={at("workload.benefit_table")}
        />
        {kubernetes && (
          <TextInput
            label="Pod's hugepages limit"
            placeholder="such as 9Gi"
            value={database.pod_hugepages_limit ?? ""}
            onChange={(event) => set({ pod_hugepages_limit: event.currentTarget.value })}
            error={at("pod_hugepages_limit")}
          />
        )}
      </div>
    </Disclosure>
  );
}
