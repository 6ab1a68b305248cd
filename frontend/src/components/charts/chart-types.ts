/** One x of a chart, with a value and an optional interval per series. `null` is unknown and leaves a gap. */
export interface ChartRow {
  x: number;
  values: Record<string, number | null>;
  ranges?: Record<string, readonly [low: number, high: number] | null>;
}

export type MarkerShape = "circle" | "square" | "triangle" | "diamond" | "none";

/** A line of a chart, or points without a line. The marker's shape says the same as the colour. */
export interface ChartSeries {
  key: string;
  label: string;
  /** A word or two for the end of the line. */
  short: string;
  color: string;
  marker: MarkerShape;
  isPoints?: boolean;
  /** Drawn dashed: it was not measured here. */
  isAssumed?: boolean;
}

/** A labelled vertical line, such as what a TLB level reaches. */
export interface ChartReference {
  x: number;
  label: string;
  color?: string;
}

export interface ChartAxis {
  label: string;
  /** "symlog" is logarithmic from `knee` on and nearly linear below it, so that zero has a place. */
  scale: "log2" | "symlog" | "linear" | "time";
  format: (value: number) => string;
  /** How tooltips and tables write an x, where a tick's text is too short to stand alone. */
  describe?: (value: number) => string;
  knee?: number;
}

/** How values are written in tooltips, tables and differences. */
export interface ValueAxis {
  label: string;
  format: (value: number | null) => string;
  formatDelta?: (value: number | null) => string;
}
