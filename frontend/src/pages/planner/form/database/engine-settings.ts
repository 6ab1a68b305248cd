import type { EngineInfo, EngineSetting } from "@/api/types";

/** Settings a reader looks for first, besides the one that sizes the pool. Others are added by name. */
const FIRST = new Set([
  "max_connections",
  "huge_pages",
  "large_pages",
  "use_large_pages",
  "innodb_buffer_pool_instances",
]);
const MOST_FIRST = 4;

/** Splits an engine's settings into those shown at once, those the form already holds (`given`), and the rest to add. */
export function splitSettings(
  engine: EngineInfo | undefined,
  given: readonly string[],
): { shown: EngineSetting[]; addable: EngineSetting[] } {
  const all = unique(engine?.settings ?? []).filter(
    (setting) => setting.matters || given.includes(setting.name),
  );
  const pool = all.filter(({ name }) => name === engine?.pool_setting);
  const first = [...pool, ...all.filter(({ name }) => FIRST.has(name) && name !== engine?.pool_setting)];
  const base = (first.length > 0 ? first : all).slice(0, MOST_FIRST);
  const names = new Set(base.map(({ name }) => name));
  const extra = given
    .filter((name) => name !== "" && !names.has(name))
    .map((name) => all.find((setting) => setting.name === name) ?? unknownSetting(name));
  const shown = [...base, ...extra];
  const taken = new Set(shown.map(({ name }) => name));
  return { shown, addable: all.filter(({ name }) => !taken.has(name)) };
}

/** A setting whose range changed between versions is listed once a version; the newest comes last. */
function unique(settings: readonly EngineSetting[]): EngineSetting[] {
  return [...new Map(settings.map((setting) => [setting.name, setting])).values()];
}

/** A setting that the engine's table does not have: the server will say so. */
function unknownSetting(name: string): EngineSetting {
  return {
    name,
    kind: "text",
    summary: "Not a setting that this engine's rule reads.",
    default: null,
    minimum: null,
    maximum: null,
    unit_bytes: 1,
    choices: [],
    versions: [],
    matters: true,
  };
}
