import { Button, TextInput } from "@mantine/core";
import { type FormEvent, useState } from "react";
import type { Verdict } from "@/api/types";
import type { ChangeInstance } from "./answer";
import classes from "./answer.module.css";

type Question = NonNullable<Verdict["question"]>;

const LABELS: Record<string, { label: string; placeholder: string }> = {
  operations_per_second_per_busy_core: {
    label: "Operations per second of a busy core",
    placeholder: "20000",
  },
  active_connections: { label: "Connections that work at one time", placeholder: "16" },
  working_set: { label: "What is read often", placeholder: "6GiB" },
  row_bytes: { label: "Bytes per row", placeholder: "128" },
};

/** The one unknown that would make the gain surest, as a field, with its effect. */
export function QuestionField({ question, onAnswer }: { question: Question; onAnswer: ChangeInstance }) {
  const [value, setValue] = useState("");
  const { label, placeholder } = LABELS[question.field] ?? { label: question.field, placeholder: "" };
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (value.trim()) onAnswer(question.instance, question.field, value.trim());
  };
  return (
    <form onSubmit={submit} className={classes.question}>
      <TextInput
        size="xs"
        label={`${label}, ${question.instance}`}
        placeholder={placeholder}
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
