import { Button } from "@mantine/core";
import type { LintReport } from "@/api/types";
import { QuestionCard } from "@/components/ui/question-card";
import { downloadText } from "@/lib/download";
import { formatCount } from "@/lib/units";
import { CommandText } from "./command-text";

/** The linter's answer as the command line prints it, and the files that it can mend. */
export function LintCard({ report, names }: { report: LintReport; names: readonly string[] }) {
  const fixed = report.files.filter(({ fixed_text: text }) => text !== null);
  return (
    <QuestionCard
      title={
        report.wrong + report.attention === 0
          ? `No rule is broken in ${names.length === 1 ? names[0] : `${formatCount(names.length)} files`}.`
          : `${formatCount(report.wrong)} wrong, ${formatCount(report.attention)} for attention.`
      }
      description="What each file will really do, which rule it breaks, and the fix, as hugeplan lint prints it."
      actions={fixed.map(({ name, fixed_text: text }) => (
        <Button
          key={name}
          size="sm"
          variant="default"
          onClick={() => downloadText(name, "text/plain", text ?? "")}
        >
          Save {name} fixed
        </Button>
      ))}
    >
      <CommandText text={report.text} />
    </QuestionCard>
  );
}
