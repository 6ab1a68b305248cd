import { ActionIcon, Select, Textarea } from "@mantine/core";
import { memo, useCallback } from "react";
import type { EngineInfo } from "@/api/types";
import { PasteSettings } from "@/components/connect/paste-settings";
import { Disclosure } from "@/components/ui/disclosure";
import type { TermName } from "@/components/ui/glossary";
import { TrashIcon } from "@/components/ui/icons";
import { pageSizeShort } from "@/lib/page-size";
import { GIB, KIB, MIB } from "@/lib/units";
import { type DatabaseForm, TABLE_CHARACTERS } from "../../draft/planner-form";
import { ChoiceField, TextField } from "../fields";
import classes from "../planner-form.module.css";
import { NumaNodeInput } from "./numa-node-input";
import { ObservedMark } from "./observed-mark";
import { SettingInputs, type SettingInputsProps } from "./setting-inputs";

interface DatabaseInputsProps extends Omit<SettingInputsProps, "engine"> {
  engines: readonly EngineInfo[];
  hugePageSizes: readonly number[];
  numaNodes: number;
  kubernetes: boolean;
  /** What runs on the node; null where that is not known. */
  running: readonly DatabaseForm[] | null;
  brought: readonly DatabaseForm[] | null;
  onRemove: (index: number) => void;
}

/** The inputs that are one text of the database. */
type DatabaseText =
  | "name"
  | "version"
  | "page_size"
  | "numa_node"
  | "connections"
  | "pool_min"
  | "pool_max"
  | "pod_hugepages_limit";
type SetText = (field: DatabaseText, value: string) => void;

/** A size as a scenario writes it: no space, so that it can be pasted anywhere. */
function plainSize(bytes: number): string {
  const [unit, name] = bytes % GIB === 0 ? [GIB, "GiB"] : bytes % MIB === 0 ? [MIB, "MiB"] : [KIB, "KiB"];
  return `${bytes / (unit as number)}${name}`;
}

/** One database instance: engine, its settings as the engine spells them, and what it does. */
export const DatabaseInputs = memo(function DatabaseInputs(props: DatabaseInputsProps) {
  const { database, index, engines, errors, onChange, onRemove } = props;
  const engine = engines.find(({ name }) => name === database.engine);
  const at = (field: string) => errors.at(`databases.${index}.${field}`);
  const setText: SetText = useCallback(
    (field, value) => onChange(index, () => ({ [field]: value })),
    [onChange, index],
  );
  const setEngine = useCallback(
    (name: string) =>
      onChange(index, () => ({ engine: name, version: undefined, settings: {}, runs_as: undefined })),
    [onChange, index],
  );
  return (
    <fieldset className={classes.item} aria-label={`Database ${database.name || index + 1}`}>
      <div className={classes.head}>
        <TextField field="name" label="Name" value={database.name} onValue={setText} error={at("name")} />
        <EngineField engines={engines} value={database.engine} onEngine={setEngine} error={at("engine")} />
        <ActionIcon
          variant="subtle"
          className={classes.remove}
          onClick={() => onRemove(index)}
          aria-label={`Remove the database ${database.name}`}
        >
          <TrashIcon />
        </ActionIcon>
      </div>
      <ObservedMark database={database} running={props.running} brought={props.brought} />
      <SettingInputs {...props} engine={engine} />
      <PasteSettings
        onRead={({ engine: name, version, settings }) =>
          onChange(index, () => ({ engine: name, version: version ?? undefined, settings }))
        }
      />
      <Choices
        engine={engine}
        hugePageSizes={props.hugePageSizes}
        version={database.version}
        versionError={at("version")}
        pageSize={database.page_size}
        pageSizeError={at("page_size")}
        setText={setText}
      />
      <NumaNodeInput
        count={props.numaNodes}
        value={database.numa_node}
        onValue={setText}
        error={at("numa_node")}
      />
      <WorkloadInputs
        index={index}
        workload={database.workload}
        connections={database.connections}
        pool_min={database.pool_min}
        pool_max={database.pool_max}
        pod_hugepages_limit={database.pod_hugepages_limit}
        kubernetes={props.kubernetes}
        errors={errors}
        setText={setText}
        onChange={onChange}
      />
    </fieldset>
  );
});

interface EngineFieldProps {
  engines: readonly EngineInfo[];
  value: string;
  error: string | undefined;
  onEngine: (name: string) => void;
}

const EngineField = memo(function EngineField({ engines, value, error, onEngine }: EngineFieldProps) {
  return (
    <Select
      label="Engine"
      searchable
      allowDeselect={false}
      data={engines.map(({ name, title }) => ({ value: name, label: title }))}
      value={value || null}
      onChange={(chosen) => chosen && onEngine(chosen)}
      error={error}
    />
  );
});

interface ChoicesProps {
  engine: EngineInfo | undefined;
  hugePageSizes: readonly number[];
  version: string | undefined;
  versionError: string | undefined;
  pageSize: string | undefined;
  pageSizeError: string | undefined;
  setText: SetText;
}

const Choices = memo(function Choices({ engine, hugePageSizes, setText, ...given }: ChoicesProps) {
  return (
    <div className={classes.pair}>
      <ChoiceField
        field="version"
        label="Version"
        data={[
          { value: "", label: engine?.versions[0] ? `Newest (${engine.versions[0]})` : "Default" },
          ...(engine?.versions ?? []).map((version) => ({ value: version, label: version })),
        ]}
        value={given.version ?? ""}
        onValue={setText}
        error={given.versionError}
      />
      <ChoiceField
        field="page_size"
        label="Page size"
        term="page-size"
        data={[
          { value: "", label: "Automatic" },
          { value: "none", label: "No huge pages" },
          ...hugePageSizes.map((size) => ({ value: plainSize(size), label: pageSizeShort(size) })),
        ]}
        value={given.pageSize ?? ""}
        onValue={setText}
        error={given.pageSizeError}
      />
    </div>
  );
});

type WorkloadForm = NonNullable<DatabaseForm["workload"]>;

type WorkloadInputsProps = Pick<
  DatabaseForm,
  "workload" | "connections" | "pool_min" | "pool_max" | "pod_hugepages_limit"
> &
  Pick<DatabaseInputsProps, "index" | "errors" | "kubernetes" | "onChange"> & { setText: SetText };

const WorkloadInputs = memo(function WorkloadInputs(props: WorkloadInputsProps) {
  const { index, errors, kubernetes, setText, onChange, workload = {}, ...database } = props;
  const at = (field: string) => errors.at(`databases.${index}.${field}`);
  const set = useCallback(
    (field: keyof WorkloadForm, value: string) =>
      onChange(index, (newest) => ({ workload: { ...newest.workload, [field]: value } })),
    [onChange, index],
  );
  const input = (field: keyof WorkloadForm, label: string, placeholder: string, term: TermName) => (
    <TextField
      field={field}
      label={label}
      term={term}
      placeholder={placeholder}
      unitBytes={field === "working_set" ? 1 : undefined}
      value={workload[field] ?? ""}
      onValue={set}
      error={at(`workload.${field}`)}
    />
  );
  return (
    <Disclosure label="Connections, workload and pool range">
      <div className={classes.stack}>
        <div className={classes.pair}>
          <TextField
            field="connections"
            label="Connections"
            term="connections"
            description="Open at peak"
            placeholder="from the settings"
            value={database.connections ?? ""}
            onValue={setText}
            error={at("connections")}
          />
          {input("active_connections", "Active at once", "unknown", "active-connections")}
        </div>
        <div className={classes.pair}>
          <TextField
            field="pool_min"
            unitBytes={1}
            label="Smallest pool"
            term="pool-range"
            description="Lets the planner choose"
            placeholder="not a range"
            value={database.pool_min ?? ""}
            onValue={setText}
            error={at("pool_range.min") ?? at("pool_range")}
          />
          <TextField
            field="pool_max"
            unitBytes={1}
            label="Largest pool"
            term="pool-range"
            description="within this range"
            placeholder="such as 16GiB"
            value={database.pool_max ?? ""}
            onValue={setText}
            error={at("pool_range.max")}
          />
        </div>
        <div className={classes.pair}>
          {input("row_bytes", "Row width in bytes", "unknown", "row-width")}
          {input("working_set", "Working set", "such as 6GiB", "working-set")}
        </div>
        {input(
          "operations_per_second_per_busy_core",
          "Operations per second per busy core",
          "unknown: gives a wider range",
          "operations-per-core",
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
          onChange={(event) => set("benefit_table", event.currentTarget.value)}
          error={at("workload.benefit_table")}
        />
        {kubernetes && (
          <TextField
            field="pod_hugepages_limit"
            unitBytes={1}
            label="Pod's hugepages limit"
            term="container-limit"
            placeholder="such as 9Gi"
            value={database.pod_hugepages_limit ?? ""}
            onValue={setText}
            error={at("pod_hugepages_limit")}
          />
        )}
      </div>
    </Disclosure>
  );
});
