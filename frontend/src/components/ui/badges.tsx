import type { CSSProperties, ReactNode } from "react";
import { type BackingKind, backingLabel, pageSizeColor, pageSizeShort } from "@/lib/page-size";
import classes from "./badges.module.css";
import { Hint } from "./hint";
import { AttentionIcon, OkIcon, UnknownIcon, WrongIcon } from "./icons";

export type Source = "measured" | "cpuid" | "catalogue" | "given" | "computed" | "assumed" | "unknown";
export type State = "ok" | "attention" | "wrong" | "unknown";

const SOURCES: Record<Source, { look: string; text: string; meaning: string }> = {
  measured: { look: "measured", text: "measured", meaning: "Measured on this node." },
  cpuid: { look: "outlined", text: "CPUID", meaning: "Read from the processor's own tables (CPUID)." },
  catalogue: { look: "outlined", text: "catalogue", meaning: "Taken from the catalogue of processors." },
  given: { look: "plain", text: "given", meaning: "Given in the scenario." },
  computed: { look: "plain", text: "computed", meaning: "Computed from other values by an exact rule." },
  assumed: {
    look: "assumed",
    text: "assumed",
    meaning: "Assumed: a stated default, not known for this node.",
  },
  unknown: { look: "unknown hp-hatched", text: "unknown", meaning: "Not known." },
};

/** Where a value comes from. The look differs by source, and so does the word. */
export function SourceBadge({ source, detail }: { source: Source; detail?: string | null }) {
  const { look, text, meaning } = SOURCES[source] ?? SOURCES.unknown;
  const [first = "", ...rest] = look.split(" ");
  return (
    <Hint
      label={detail ? `${meaning} ${detail}` : meaning}
      className={[classes.badge, classes[first], ...rest].join(" ")}
    >
      {text}
    </Hint>
  );
}

const STATES: Record<State, { icon: ReactNode; text: string }> = {
  ok: { icon: <OkIcon />, text: "OK" },
  attention: { icon: <AttentionIcon />, text: "Attention" },
  wrong: { icon: <WrongIcon />, text: "Wrong" },
  unknown: { icon: <UnknownIcon />, text: "Unknown" },
};

/** A verdict: its shape and word say the same as its colour. */
export function StateBadge({ state, text }: { state: State; text?: string }) {
  const known = STATES[state] ?? STATES.unknown;
  return (
    <span
      className={`${classes.badge} ${classes.state} ${state === "unknown" ? "hp-hatched" : ""}`}
      data-state={state}
    >
      {known.icon}
      {text ?? known.text}
    </span>
  );
}

/** Marks data that was made by hand, wherever it could be taken for a machine's. */
export function SyntheticBadge() {
  return (
    <Hint
      label="Made by hand: it describes no real machine."
      className={`${classes.badge} ${classes.assumed}`}
    >
      synthetic
    </Hint>
  );
}

/** A square of a data colour, beside its name. */
export function Swatch({
  color,
  striped,
  outlined,
}: {
  color: string;
  striped?: boolean;
  outlined?: boolean;
}) {
  return (
    <span
      className={classes.swatch}
      data-striped={striped}
      data-outlined={outlined}
      style={{ "--swatch": color } as CSSProperties}
      aria-hidden="true"
    />
  );
}

/** A page size with its hue. */
export function PageSizeBadge({ pageBytes, kind }: { pageBytes: number; kind: BackingKind }) {
  return (
    <Hint label={backingLabel(kind, pageBytes)} className={`${classes.badge} ${classes.outlined}`}>
      <Swatch color={pageSizeColor(pageBytes, kind)} />
      {kind === "thp" ? "THP" : pageSizeShort(pageBytes)}
    </Hint>
  );
}
