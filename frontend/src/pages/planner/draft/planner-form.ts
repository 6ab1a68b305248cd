import * as z from "zod/mini";

/**
 * The planner's form: every input as the text that stands in it. The server judges the values; the form only keeps
 * them. Read leniently, so that a link from an older version or a cut-off one still opens.
 */
const text = z.catch(z.string().check(z.maxLength(500)), "");
const flag = z.catch(z.boolean(), false);
/** A pasted table lives in the address too; what is longer belongs into a scenario file. */
export const TABLE_CHARACTERS = 8000;

const workloadForm = z.partial(
  z.object({
    row_bytes: text,
    working_set: text,
    active_connections: text,
    operations_per_second_per_busy_core: text,
    benefit_table: z.catch(z.string().check(z.maxLength(TABLE_CHARACTERS)), ""),
  }),
);

/** The name that something had in the scenario it came from: what the form does not show is found there. */
const origin = z.catch(z.optional(text), undefined);

const databaseForm = z.object({
  name: text,
  origin,
  engine: text,
  version: z.optional(text),
  settings: z.catch(z.record(z.string(), text), {}),
  connections: z.optional(text),
  page_size: z.optional(text),
  /** A range lets the planner choose the pool size; it is used when either end is given. */
  pool_min: z.optional(text),
  pool_max: z.optional(text),
  numa_node: z.optional(text),
  pod_hugepages_limit: z.optional(text),
  /** The database of the node's sample that this one describes; it came with the node. */
  runs_as: z.catch(z.optional(z.string().check(z.maxLength(512))), undefined),
  workload: z.catch(z.optional(workloadForm), undefined),
});

const tenantForm = z.object({
  name: text,
  origin,
  kind: z.catch(z.enum(["pod", "service", "page_cache"]), "pod"),
  count: text,
  request: text,
  limit: text,
  numa_node: z.optional(text),
});

const nodeForm = z.partial(z.object({ memory: text, cpus: text, arch: text }));

const reservationsForm = z.partial(
  z.object({
    kubernetes: flag,
    provider: text,
    kube_reserved: text,
    system_reserved: text,
    eviction_hard: text,
    max_pods: text,
    /** True while these are what the chosen node reported, and nobody changed them. */
    from_node: flag,
  }),
);

const policyForm = z.partial(z.object({ slack: text, risk: text, reserve_at: text, free_margin: text }));

const plannerForm = z.object({
  node: z.catch(nodeForm, {}),
  databases: z.catch(z.array(databaseForm).check(z.maxLength(256)), []),
  tenants: z.catch(z.array(tenantForm).check(z.maxLength(1000)), []),
  reservations: z.catch(reservationsForm, {}),
  policy: z.catch(policyForm, {}),
  /** Names of observed workloads that the plan leaves out. */
  exclude: z.catch(z.optional(z.array(text).check(z.maxLength(500))), undefined),
});

export type PlannerForm = z.infer<typeof plannerForm>;
/** A change of the newest form: a part of the page that was not drawn again must not bring back an old one. */
export type ChangeForm = (change: (newest: PlannerForm) => PlannerForm) => void;
export type DatabaseForm = z.infer<typeof databaseForm>;
export type TenantForm = z.infer<typeof tenantForm>;

const DEFAULT_MEMORY = "64GiB";

export function newDatabase(taken: readonly DatabaseForm[], engine = "postgresql"): DatabaseForm {
  return { name: freeName("main", "db", taken), engine, settings: {} };
}

export function newTenant(taken: readonly TenantForm[]): TenantForm {
  return { name: freeName("app", "app", taken), kind: "pod", count: "1", request: "", limit: "" };
}

/** `first` where nothing is called so, else `stem` with the first free number. */
export function freeName(first: string, stem: string, taken: readonly { name: string }[]): string {
  const names = new Set(taken.map(({ name }) => name));
  if (!names.has(first)) return first;
  let number = 2;
  while (names.has(`${stem}-${number}`)) number += 1;
  return `${stem}-${number}`;
}

/** What a planner opens with: one PostgreSQL with the engine's defaults. */
export function initialForm(): PlannerForm {
  return {
    node: { memory: DEFAULT_MEMORY },
    databases: [newDatabase([])],
    tenants: [],
    reservations: {},
    policy: {},
  };
}

/** The form of a link; anything that cannot be read gives the initial form. */
export function readForm(value: unknown): PlannerForm {
  if (value === undefined || value === null) return initialForm();
  const read = plannerForm.safeParse(value);
  return read.success ? read.data : initialForm();
}

type Json = Record<string, unknown>;

/** Drops what was left empty, so that the server uses its default. */
function filled(entries: Json): Json {
  return Object.fromEntries(
    Object.entries(entries).filter(([, value]) => {
      if (value === undefined || value === null || value === "" || value === false) return false;
      return !(typeof value === "object" && !Array.isArray(value) && Object.keys(value).length === 0);
    }),
  );
}

/** A whole number where the text is one; else the text, for the server to refuse with the field's name. */
export function wholeNumber(value: string | undefined): number | string | undefined {
  const trimmed = value?.trim();
  if (!trimmed) return undefined;
  return /^\d{1,15}$/.test(trimmed) ? Number(trimmed) : trimmed;
}

function decimalNumber(value: string | undefined): number | string | undefined {
  const trimmed = value?.trim();
  if (!trimmed) return undefined;
  return /^\d+(\.\d+)?$/.test(trimmed) ? Number(trimmed) : trimmed;
}

const trimmed = (value: string | undefined) => value?.trim() || undefined;

/** Fields that the scenario has as numbers; all others are texts. */
const WHOLE = new Set([
  "cpus",
  "max_pods",
  "count",
  "connections",
  "numa_node",
  "row_bytes",
  "active_connections",
]);
const DECIMAL = new Set(["operations_per_second_per_busy_core"]);

/** What the form has an input for, by part; everything else of a scenario is taken over as it is. */
const FIELDS = {
  node: Object.keys(nodeForm.shape),
  database: fieldsOf(databaseForm.shape, ["origin", "settings", "pool_min", "pool_max", "workload"]),
  workload: Object.keys(workloadForm.shape),
  tenant: fieldsOf(tenantForm.shape, ["origin"]),
  reservations: fieldsOf(reservationsForm.shape, ["kubernetes", "from_node"]),
  policy: Object.keys(policyForm.shape),
};
/** Parts that are more than a text each. */
const WITH_PARTS: Partial<Record<keyof typeof FIELDS, readonly string[]>> = {
  database: ["settings", "pool_range", "workload"],
  reservations: ["kubernetes"],
};
const WHOLE_PARTS = ["schema_version", "node", "reservations", "policy", "observed", "tenants", "databases"];

function fieldsOf(shape: object, without: readonly string[]): string[] {
  return Object.keys(shape).filter((name) => !without.includes(name));
}

/** The texts of a part as the scenario has them, without those that are empty. */
function written(part: keyof typeof FIELDS, texts: Json): Json {
  return filled(
    Object.fromEntries(
      FIELDS[part].map((name) => {
        const text = trimmed(texts[name] as string | undefined);
        return [name, WHOLE.has(name) ? wholeNumber(text) : DECIMAL.has(name) ? decimalNumber(text) : text];
      }),
    ),
  );
}

function without(source: unknown, shown: readonly string[]): Json {
  return Object.fromEntries(Object.entries(record(source)).filter(([key]) => !shown.includes(key)));
}

/** The parts of `source` that the form has no input for. */
function notInForm(source: unknown, part: keyof typeof FIELDS): Json {
  return without(source, [...FIELDS[part], ...(WITH_PARTS[part] ?? [])]);
}

function records(value: unknown): Json[] {
  return Array.isArray(value) ? value.map(record) : [];
}

/** Where an entry of the form comes from, by the name it had there. */
function sourceOf(entry: { name: string; origin?: string | undefined }, list: unknown): Json {
  const entries = records(list);
  const named = (name: string | undefined) => entries.find((other) => other.name === name);
  return (entry.origin === undefined ? undefined : named(entry.origin)) ?? named(entry.name.trim()) ?? {};
}

function databaseDocument(database: DatabaseForm, source: Json): Json {
  return {
    ...written("database", database),
    ...filled({
      settings: filled(
        Object.fromEntries(Object.entries(database.settings).map(([name, value]) => [name, value.trim()])),
      ),
      pool_range: filled({ min: trimmed(database.pool_min), max: trimmed(database.pool_max) }),
      workload: {
        ...notInForm(source.workload, "workload"),
        ...written("workload", database.workload ?? {}),
      },
    }),
    ...notInForm(source, "database"),
  };
}

function reservationsDocument(form: PlannerForm["reservations"], source: unknown): Json {
  // The rest of a Kubernetes node's reservations goes with the switch.
  const rest = form.kubernetes === (record(source).kubernetes === true) ? source : undefined;
  const { system_reserved, ...kubelet } = written("reservations", form);
  return {
    ...filled({ system_reserved }),
    ...(form.kubernetes ? { kubernetes: true, ...kubelet } : {}),
    ...notInForm(rest, "reservations"),
  };
}

/**
 * The scenario document of a form. With a node of the fleet its facts come from the server, else from the form. What the
 * form has no input for is taken over from `source`, the scenario that the form was read from.
 */
export function toScenario(form: PlannerForm, hasNode: boolean, source: Json = {}): Json {
  const node = { name: "node", ...notInForm(source.node, "node"), ...written("node", form.node) };
  return {
    ...without(source, WHOLE_PARTS),
    schema_version: 1,
    ...(hasNode ? {} : { node }),
    ...filled({
      reservations: reservationsDocument(form.reservations, source.reservations),
      policy: { ...notInForm(source.policy, "policy"), ...written("policy", form.policy) },
      observed: {
        ...without(source.observed, ["exclude"]),
        ...(form.exclude?.length ? { exclude: form.exclude } : {}),
      },
    }),
    tenants: form.tenants.map((tenant) => ({
      ...written("tenant", tenant),
      ...notInForm(sourceOf(tenant, source.tenants), "tenant"),
    })),
    databases: form.databases.map((database) =>
      databaseDocument(database, sourceOf(database, source.databases)),
    ),
  };
}

function asText(value: unknown): string {
  return value === null || value === undefined ? "" : String(value);
}

function record(value: unknown): Json {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Json) : {};
}

function texts(value: unknown): Record<string, string> {
  return Object.fromEntries(Object.entries(record(value)).map(([key, entry]) => [key, asText(entry)]));
}

function excludedOf(observed: unknown): string[] | undefined {
  const { exclude } = record(observed);
  return Array.isArray(exclude) && exclude.length > 0 ? exclude.map(asText) : undefined;
}

/** The form of a saved scenario. What of it would be lost when it is saved again is named. */
export function fromScenario(scenario: Json): { form: PlannerForm; notShown: string[] } {
  const reservations = record(scenario.reservations);
  const candidate = {
    node: texts(scenario.node),
    databases: records(scenario.databases).map((database) => ({
      ...texts(database),
      origin: asText(database.name),
      pool_min: asText(record(database.pool_range).min),
      pool_max: asText(record(database.pool_range).max),
      settings: texts(database.settings),
      workload: texts(database.workload),
    })),
    tenants: records(scenario.tenants).map((tenant) => ({
      count: "1",
      request: "",
      limit: "",
      kind: "pod",
      ...texts(tenant),
      origin: asText(tenant.name),
    })),
    reservations: { ...texts(reservations), kubernetes: reservations.kubernetes === true },
    policy: texts(scenario.policy),
    exclude: excludedOf(scenario.observed),
  };
  const form = readForm(candidate);
  return {
    form,
    notShown: lostPaths(
      scenario,
      toScenario(form, scenario.node === undefined || scenario.node === null, scenario),
    ),
  };
}

/** Paths of `before` that are not in `after`; values that only changed from number to text count as kept. */
function lostPaths(before: unknown, after: unknown, path = ""): string[] {
  if (before === null || before === undefined || before === false || before === "") return [];
  if (Array.isArray(before)) {
    return before.flatMap((entry, index) =>
      lostPaths(entry, (Array.isArray(after) ? after : [])[index], `${path}[${index}]`),
    );
  }
  if (typeof before === "object") {
    return Object.entries(before as Json).flatMap(([key, value]) =>
      lostPaths(value, record(after)[key], path ? `${path}.${key}` : key),
    );
  }
  return asText(before) === asText(after) ? [] : [path];
}

/** The paths that the form has an input for. */
export function inputPaths(
  databases: readonly { settings: Record<string, string> }[],
  tenants: number,
): Set<string> {
  const under = (path: string, names: readonly string[]) => names.map((name) => `${path}.${name}`);
  const parts = (["node", "reservations", "policy"] as const).flatMap((part) => under(part, FIELDS[part]));
  return new Set([
    ...parts,
    ...databases.flatMap(({ settings }, index) => [
      ...under(`databases.${index}`, [...FIELDS.database, "pool_range", "pool_range.min", "pool_range.max"]),
      ...under(`databases.${index}.workload`, FIELDS.workload),
      ...under(`databases.${index}.settings`, Object.keys(settings)),
    ]),
    ...Array.from({ length: tenants }, (_, index) => under(`tenants.${index}`, FIELDS.tenant)).flat(),
  ]);
}

function withDatabase(
  form: PlannerForm,
  instance: string,
  change: (database: DatabaseForm) => Partial<DatabaseForm>,
): PlannerForm {
  return {
    ...form,
    databases: form.databases.map((database) =>
      database.name.trim() === instance ? { ...database, ...change(database) } : database,
    ),
  };
}

/** The form with one setting of one database changed. */
export function withSetting(
  form: PlannerForm,
  instance: string,
  setting: string,
  value: string,
): PlannerForm {
  return withDatabase(form, instance, ({ settings }) => ({ settings: { ...settings, [setting]: value } }));
}

/** The form with one figure of what a database does changed. */
export function withWorkload(form: PlannerForm, instance: string, field: string, value: string): PlannerForm {
  return withDatabase(form, instance, ({ workload }) => ({ workload: { ...workload, [field]: value } }));
}
