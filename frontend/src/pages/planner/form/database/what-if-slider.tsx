import { Slider } from "@mantine/core";
import { memo, type ReactNode } from "react";
import classes from "./what-if-slider.module.css";

interface WhatIfSliderProps<Field extends string> {
  /** What it moves. */
  field: Field;
  label: string;
  min: number;
  max: number;
  step?: number;
  value: number;
  format: (value: number) => string;
  /** Places worth knowing, such as what runs today. */
  marks?: readonly { value: number; label: string }[];
  onValue: (field: Field, value: number) => void;
}

const NO_MARKS: readonly { value: number; label: string }[] = [];

function PlainSlider<Field extends string>({
  field,
  label,
  min,
  max,
  step = 1,
  value,
  format,
  marks = NO_MARKS,
  onValue,
}: WhatIfSliderProps<Field>) {
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
      onChange={(moved) => onValue(field, moved)}
      thumbLabel={label}
      thumbValueText={format}
    />
  );
}

/** A slider beside the field that it moves: every movement is an edit, and the answer follows it. */
export const WhatIfSlider = memo(PlainSlider) as <Field extends string>(
  props: WhatIfSliderProps<Field>,
) => ReactNode;
