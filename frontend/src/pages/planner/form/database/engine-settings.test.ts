import { expect, it } from "vitest";
import type { EngineInfo, EngineSetting } from "@/api/types";
import { splitSettings } from "./engine-settings";

const setting = (name: string, over: Partial<EngineSetting> = {}): EngineSetting => ({
  name,
  kind: "bytes",
  summary: "",
  default: null,
  minimum: null,
  maximum: null,
  unit_bytes: 1,
  choices: [],
  versions: [],
  matters: true,
  ...over,
});

const engine: EngineInfo = {
  name: "postgresql",
  title: "PostgreSQL",
  summary: "",
  versions: ["18", "17"],
  aliases: [],
  wants_pool: true,
  pool_setting: "shared_buffers",
  process_per_connection: true,
  settings: [
    setting("DateStyle", { matters: false }),
    setting("huge_pages", { choices: ["off", "on", "try"] }),
    setting("wal_buffers", { versions: ["15"] }),
    setting("wal_buffers", { versions: ["18"], default: "-1" }),
    setting("shared_buffers"),
    setting("max_connections"),
  ],
};

it("shows the pool's setting first, and each setting once", () => {
  const { shown, addable } = splitSettings(engine, []);
  expect(shown.map(({ name }) => name)).toEqual(["shared_buffers", "huge_pages", "max_connections"]);
  expect(addable.map(({ name, default: value }) => [name, value])).toEqual([["wal_buffers", "-1"]]);
});

it("keeps what the form holds in sight, even what the engine does not know", () => {
  const { shown } = splitSettings(engine, ["DateStyle", "odd_one"]);
  expect(shown.slice(3).map(({ name }) => name)).toEqual(["DateStyle", "odd_one"]);
  expect(shown.at(-1)?.summary).toContain("Not a setting");
});

it("falls back to the first settings of an engine without familiar names", () => {
  const generic = { ...engine, pool_setting: null, settings: [setting("a"), setting("b")] };
  expect(splitSettings(generic, []).shown.map(({ name }) => name)).toEqual(["a", "b"]);
  expect(splitSettings(undefined, []).shown).toEqual([]);
});
