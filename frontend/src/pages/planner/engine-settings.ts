import type { EngineInfo, EngineSetting } from "@/api/types";

/** Settings a reader of each engine looks for first. Others are added by name. */
const FIRST: Record<string, readonly string[]> = {
  postgresql: ["shared_buffers", "max_connections", "huge_pages"],
  mysql: ["innodb_buffer_pool_size", "innodb_buffer_pool_instances", "large_pages"],
  mariadb: ["innodb_buffer_pool_size", "large_pages"],
  oracle: ["sga_target", "sga_max_size", "use_large_pages"],
  db2: ["database_memory", "instance_memory"],
  jvm: ["-Xmx", "-Xms"],
  generic: ["segment_bytes", "segment"],
};
const FALLBACK_COUNT = 3;

/** Splits an engine's settings into those shown at once, those the form already holds, and the rest to add. */
export function splitSettings(
  engine: EngineInfo | undefined,
  given: Readonly<Record<string, string>>,
): { shown: EngineSetting[]; addable: EngineSetting[] } {
  const all = engine?.settings ?? [];
  const wanted = FIRST[engine?.name ?? ""] ?? [];
  const first = all.filter(({ name }) => wanted.includes(name));
  const base = first.length > 0 ? first : all.slice(0, FALLBACK_COUNT);
  const names = new Set(base.map(({ name }) => name));
  const extra = Object.keys(given)
    .filter((name) => !names.has(name))
    .map((name) => all.find((setting) => setting.name === name) ?? unknownSetting(name));
  const shown = [...base, ...extra];
  const taken = new Set(shown.map(({ name }) => name));
  return { shown, addable: all.filter(({ name }) => !taken.has(name)) };
}

/** A setting that the engine's table does not have: the server will say so. */
function unknownSetting(name: string): EngineSetting {
  return { name, default: null, unit: null, description: "Not a setting that this engine's rule reads." };
}
