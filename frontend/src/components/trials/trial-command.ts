import type { Gain } from "@/api/types";
import { GIB } from "@/lib/units";

/** Engines that `hugeplan trial` can measure by itself. */
const TRIED = new Set(["postgresql", "mariadb", "mysql"]);
/** A trial matches a plan within a factor of four of the data; two servers hold it. */
const MOST_WITHOUT_CUT = 2 * GIB;
const DATA_FACTOR = 4;

/** The command that measures on the node what a gain predicts; null where no trial matches such a gain. */
export function trialCommand(gain: Gain, engine: string, service: string): string | null {
  if (!TRIED.has(engine) || gain.measured_here) return null;
  const value = (name: string) => Number(gain.inputs.find((term) => term.name === name)?.value ?? Number.NaN);
  const rows = value("row_bytes");
  const data = value("working_set_bytes");
  const clients = value("private page tables in use");
  if (!Number.isFinite(rows) || !Number.isFinite(data) || !Number.isFinite(clients)) return null;
  const share = data > MOST_WITHOUT_CUT ? Math.max(MOST_WITHOUT_CUT, data / DATA_FACTOR) : data;
  const gib = Math.max(0.1, Math.ceil((10 * share) / GIB) / 10);
  const pages = gain.backing_kind === "thp" ? "thp" : gain.backing;
  // Only an engine of one process per connection counts its clients by their page tables.
  const asked = engine === "postgresql" ? ` --clients ${clients}` : "";
  return `hugeplan trial ${engine} --row-bytes ${rows}${asked} --data-gib ${gib} --page-sizes ${pages},4K --to ${service}`;
}
