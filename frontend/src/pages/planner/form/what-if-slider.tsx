import { Slider } from "@mantine/core";
import classes from "./what-if-slider.module.css";

interface WhatIfSliderProps {
  label: string;
  min: number;
  max: number;
  step?: number;
  value: number;
  format: (value: number) => string;
  /** Places worth knowing, such as what runs today. */
  marks?: readonly { value: number; label: string }[];
  onChange: (value: number) => void;
}

/** A slider beside the field that it moves: every movement is an edit, and the answer follows it. */
export function WhatIfSlider({
  label,
  min,
  max,
  step = 1,
  value,
  format,
  marks = [],
  onChange,
}: WhatIfSliderProps) {
  return (
    <Slider
      className={classes.slider}
      size="sm"
      thumbSize={16}
      min={min}
      max={max}
      step={step}
      value={Math.min(max, Math.max(min, value))}
      label={format}
      marks={marks
        .filter(({ value: at }) => at >= min && at <= max)
        .map(({ value: at, label: text }) => ({ value: at, label: text }))}
      onChange={onChange}
      thumbLabel={label}
      thumbValueText={format}
    />
  );
}
