import { Swatch } from "@/components/ui/badges";
import classes from "./memory-map.module.css";
import { compareParts, type MapBar, type MapPart } from "./memory-map-types";

/** The part that is pointed at, marked wherever it is drawn. */
export interface ActiveProps {
  active: string | null;
  onActive: (key: string | null) => void;
}

interface MapRow {
  part: MapPart;
  /** Null where no bar has this part: it is not zero, it is not told apart there. */
  bytes: number | null;
  ghostBytes: number | null;
}

/** The parts of all bars summed by key, in drawing order, for the table. */
export function mapRows(bars: readonly MapBar[]): MapRow[] {
  const rows = new Map<string, MapRow>();
  const add = (part: MapPart, field: "bytes" | "ghostBytes") => {
    const row = rows.get(part.key) ?? { part, bytes: null, ghostBytes: null };
    row[field] = (row[field] ?? 0) + part.bytes;
    rows.set(part.key, row);
  };
  for (const bar of bars) {
    for (const part of bar.ghost ?? []) add(part, "ghostBytes");
    for (const part of bar.parts) add(part, "bytes");
  }
  return [...rows.values()]
    .filter((row) => row.bytes || row.ghostBytes)
    .sort((a, b) => compareParts(a.part, b.part));
}

export function PartSwatch({ part }: { part: MapPart }) {
  if (part.look === "unknown")
    return <span className={`hp-hatched ${classes.unknownSwatch}`} aria-hidden="true" />;
  if (part.look === "free") return <Swatch color="transparent" outlined />;
  if (part.look === "slack" || part.look === "missing") return <Swatch color={part.color} striped />;
  return <Swatch color={part.color} />;
}
