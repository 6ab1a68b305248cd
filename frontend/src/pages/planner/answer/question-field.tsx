import { Button, TextInput } from "@mantine/core";
import { type FormEvent, useState } from "react";
import type { Verdict } from "@/api/types";
import classes from "./answer.module.css";

type Question = NonNullable<Verdict["question"]>;

/** A change of one database that the answer offers, taken over into the form. */
export type ChangeInstance = (instance: string, field: string, value: string) => void;

const LABELS: Record<string, string> = {
  operations_per_second_per_busy_core: "Operations per second of a busy core",
  active_connections: "Connections that work at one time",
  working_set: "What is read often",
  row_bytes: "Bytes per row",
};

/** The one unknown that would make the gain surest, as a field, with its effect. */
export function QuestionField({ question, onAnswer }: { question: Question; onAnswer: ChangeInstance }) {
  const [value, setValue] = useState("");
  const label = LABELS[question.field] ?? question.field;
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (value.trim()) onAnswer(question.instance, question.field, value.trim());
  };
  return (
    <form onSubmit={submit} className={classes.question}>
      <TextInput
        size="xs"
        label={`${label}, ${question.instance}`}
        // What the plan takes for it: the same figure as in the sentence below.
        placeholder={question.assumed}
        value={value}
        onChange={(event) => setValue(event.currentTarget.value)}
        rightSectionWidth={52}
        rightSection={
          <Button type="submit" size="compact-xs" variant="default" disabled={value.trim() === ""}>
            Use
          </Button>
        }
      />
      <span className={classes.line}>{question.effect}</span>
    </form>
  );
}
