import type { EngineInfo, Plan } from "@/api/types";
import { formatBytes, GIB, KIB, MIB, TIB } from "@/lib/units";
import type { PlannerForm } from "./planner-form";

const FACTORS: Record<string, number> = { "": 1, K: KIB, M: MIB, G: GIB, T: TIB };
const SIZE = /^\s*(\d+(?:\.\d+)?)\s*([KMGT]?)(i?B?)\s*$/i;

/** How an engine spells sizes: PostgreSQL takes kB, MB and GB, most others one letter. */
export function sizeSuffix(engine: EngineInfo | undefined): string {
  return engine?.name === "postgresql" ? "B" : "";
}

/** The bytes of a size setting as it stands in the form; null where it is not a size with a unit. */
export function settingBytes(text: string | undefined, unitBytes: number): number | null {
  const match = SIZE.exec(text ?? "");
  if (!match) return null;
  const [, digits = "", letter = "", suffix = ""] = match;
  if (letter === "" && suffix === "") return Number(digits) * unitBytes;
  return Number(digits) * (FACTORS[letter.toUpperCase()] ?? 1);
}

/** What a number without a unit is read as, in words; null where a unit is given. 32 of 8 KiB each are 256 KiB. */
export function bareSizeText(text: string, unitBytes: number): string | null {
  if (!/^\s*\d+(\.\d+)?\s*$/.test(text)) return null;
  const bytes = settingBytes(text, unitBytes);
  if (!bytes) return null;
  const times = unitBytes === 1 ? "" : ` (${text.trim()} × ${formatBytes(unitBytes)})`;
  return `No unit: read as ${formatBytes(bytes)}${times}.`;
}

/** A size as the engine spells it, in whole GiB or MiB: 8 GiB is "8GB" for PostgreSQL and "8G" for MySQL. */
export function settingText(bytes: number, suffix: string): string {
  const mebibytes = Math.max(1, Math.round(bytes / MIB));
  return mebibytes % 1024 === 0 ? `${mebibytes / 1024}G${suffix}` : `${mebibytes}M${suffix}`;
}

const STEPS_PER_DOUBLING = 16;

/** A slider for sizes is logarithmic: a step is the same share everywhere. Sizes are rounded to what reads well. */
export function sizeToStep(bytes: number): number {
  return Math.round(Math.log2(Math.max(bytes, MIB) / MIB) * STEPS_PER_DOUBLING);
}

export function stepToSize(step: number): number {
  const bytes = MIB * 2 ** (step / STEPS_PER_DOUBLING);
  // Finer than half a step everywhere, or two steps would be one size and the slider would stand still between them.
  const unit = bytes >= 8 * GIB ? GIB / 4 : bytes >= GIB ? 16 * MIB : 2 * MIB;
  return Math.max(unit, Math.round(bytes / unit) * unit);
}

/**
 * The form with one database's pool setting changed so that its pool of a page size grows or shrinks by about
 * `deltaBytes`: of several databases the one with the largest pool of that size. Null when none can be changed here.
 */
export function resizedPool(
  form: PlannerForm,
  plan: Plan,
  engines: readonly EngineInfo[],
  pageBytes: number,
  deltaBytes: number,
): PlannerForm | null {
  const [largest] = plan.instances
    .filter((instance) => instance.page_bytes === pageBytes && (instance.demand.pool_bytes ?? 0) > 0)
    .sort((a, b) => (b.demand.pool_bytes ?? 0) - (a.demand.pool_bytes ?? 0));
  const index = form.databases.findIndex(({ name }) => name.trim() === largest?.name);
  const database = form.databases[index];
  const engine = engines.find(({ name }) => name === database?.engine);
  const setting = engine?.settings.findLast(({ name }) => name === engine.pool_setting);
  if (!database || !engine || !setting || setting.kind !== "bytes") return null;
  const now = settingBytes(database.settings[setting.name], setting.unit_bytes) ?? largest?.demand.pool_bytes;
  if (!now) return null;
  const size = Math.max(8 * MIB, Math.round((now + deltaBytes) / (8 * MIB)) * 8 * MIB);
  const settings = { ...database.settings, [setting.name]: settingText(size, sizeSuffix(engine)) };
  return {
    ...form,
    databases: form.databases.map((other, position) => (position === index ? { ...other, settings } : other)),
  };
}
