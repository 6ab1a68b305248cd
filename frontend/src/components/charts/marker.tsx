import type { ChartSeries, MarkerShape } from "./chart-types";

/** A point of a line. The shape carries the series as the colour does. */
export function Marker({
  shape,
  x,
  y,
  color,
  size = 3.4,
}: {
  shape: MarkerShape;
  x: number;
  y: number;
  color: string;
  size?: number;
}) {
  if (shape === "none") return null;
  const common = { fill: color, stroke: "var(--hp-surface)", strokeWidth: 1 };
  if (shape === "circle") return <circle cx={x} cy={y} r={size} {...common} />;
  if (shape === "square")
    return <rect x={x - size} y={y - size} width={2 * size} height={2 * size} {...common} />;
  const reach = size * 1.35;
  const points =
    shape === "triangle"
      ? `${x},${y - reach} ${x + reach},${y + size} ${x - reach},${y + size}`
      : `${x},${y - reach} ${x + reach},${y} ${x},${y + reach} ${x - reach},${y}`;
  return <polygon points={points} {...common} />;
}

/** The series' mark as it stands in legends, tables and tooltips. */
export function SeriesMark({ marker, color, isPoints }: Pick<ChartSeries, "marker" | "color" | "isPoints">) {
  return (
    <svg width={22} height={12} aria-hidden="true" focusable="false" className="hp-fixed">
      {!isPoints && <line x1={0} x2={22} y1={6} y2={6} stroke={color} strokeWidth={2} />}
      <Marker shape={marker} x={11} y={6} color={color} />
    </svg>
  );
}
