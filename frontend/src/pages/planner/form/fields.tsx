import { NativeSelect, type NativeSelectProps, TextInput, type TextInputProps } from "@mantine/core";
import { memo, type ReactNode } from "react";
import type { TermName } from "@/components/ui/glossary";
import { Term } from "@/components/ui/term";
import { bareSizeText } from "../draft/pool-size";

/**
 * Fields that are drawn again for their own value only: a key costs the one field that it changes. They say which field
 * changed, so that one function serves all fields of a group.
 */
interface Named<Field extends string> {
  field: Field;
  onValue: (field: Field, value: string) => void;
  /** The label's explanation, by its name in the glossary. */
  term?: TermName;
}

/** The label, explained where there is something to explain. */
function labelled(label: ReactNode, term: TermName | undefined) {
  return term ? <Term name={term}>{label}</Term> : label;
}

type TextFieldProps<Field extends string> = Omit<TextInputProps, "onChange" | "value"> &
  Named<Field> & {
    value: string;
    /** Of a size: what a number without a unit counts. Such a number is said to be one. */
    unitBytes?: number;
  };

function PlainTextField<Field extends string>({
  field,
  onValue,
  term,
  label,
  unitBytes,
  description,
  ...input
}: TextFieldProps<Field>) {
  return (
    <TextInput
      {...input}
      description={(unitBytes && bareSizeText(input.value, unitBytes)) || description}
      // What is said while somebody types must not move the field.
      inputWrapperOrder={unitBytes ? ["label", "input", "description", "error"] : undefined}
      label={labelled(label, term)}
      onChange={(event) => onValue(field, event.currentTarget.value)}
    />
  );
}

export const TextField = memo(PlainTextField) as <Field extends string>(
  props: TextFieldProps<Field>,
) => ReactNode;

type ChoiceFieldProps<Field extends string> = Omit<NativeSelectProps, "onChange"> & Named<Field>;

function PlainChoiceField<Field extends string>({
  field,
  onValue,
  term,
  label,
  ...input
}: ChoiceFieldProps<Field>) {
  return (
    <NativeSelect
      {...input}
      label={labelled(label, term)}
      onChange={(event) => onValue(field, event.currentTarget.value)}
    />
  );
}

export const ChoiceField = memo(PlainChoiceField) as <Field extends string>(
  props: ChoiceFieldProps<Field>,
) => ReactNode;
