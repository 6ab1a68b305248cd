import classes from "./range-bar.module.css";

interface RangeBarProps {
  range: { low: number; likely: number; high: number };
  format: (value: number) => string;
}

/** One range drawn with its most likely value, on a scale that includes zero; its ends are written beneath. */
export function RangeBar({ range, format }: RangeBarProps) {
  const low = Math.min(0, range.low);
  const high = Math.max(0, range.high) || 1;
  const at = (value: number) => `${(100 * (value - low)) / (high - low)}%`;
  return (
    <span className={classes.box}>
      <span className={classes.track} aria-hidden="true">
        <span
          className={classes.band}
          style={{ left: at(range.low), width: `${(100 * (range.high - range.low)) / (high - low)}%` }}
        />
        <span className={classes.zero} style={{ left: at(0) }} />
        <span className={classes.likely} style={{ left: at(range.likely) }} />
      </span>
      <span className={classes.axis} aria-hidden="true">
        <span style={{ left: at(0) }}>0</span>
      </span>
      <span className={classes.ends}>
        {format(range.low)} to {format(range.high)}
      </span>
    </span>
  );
}
