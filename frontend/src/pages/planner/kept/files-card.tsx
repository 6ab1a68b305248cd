import { Button, Group, NativeSelect, Tabs } from "@mantine/core";
import { useState } from "react";
import type { PlanArtifact, SavedPlan } from "@/api/types";
import { CommandLine } from "@/components/ui/command-line";
import { CopyButton } from "@/components/ui/copy-button";
import { DownloadIcon } from "@/components/ui/icons";
import { QuestionCard } from "@/components/ui/question-card";
import { StateText } from "@/components/ui/states";
import { kindTitle, whatItDoes } from "./artifact-texts";
import classes from "./files-card.module.css";

/** A kind may have several files, one per pod. */
function tabOf({ kind, filename }: PlanArtifact): string {
  return `${kind}:${filename}`;
}

/** The files of a kept plan: the recommended path first, with the commands that verify it and roll it back. */
export function FilesCard({
  kept,
}: {
  kept: Pick<SavedPlan, "id" | "artifacts" | "artifacts_withheld" | "verdict">;
}) {
  const [chosen, choose] = useState<string | null>(null);
  const ordered = [...kept.artifacts].sort(byRecommendation);
  const first = mainOf(ordered);
  if (!first) {
    return (
      <QuestionCard title="There is no file to apply.">
        <StateText>
          {kept.artifacts_withheld ??
            (kept.verdict?.answer === "dont" ? kept.verdict.reason : "This plan changes nothing.")}
        </StateText>
      </QuestionCard>
    );
  }
  const current = ordered.find((artifact) => tabOf(artifact) === chosen) ?? first;
  // The recommended path as tabs; another way is one choice away, and then has a tab too.
  const isPath = (artifact: PlanArtifact) =>
    artifact.recommended || artifact === current || artifact === first;
  const tabs = ordered.filter(isPath);
  const others = ordered.filter((artifact) => !isPath(artifact));
  return (
    <QuestionCard
      title={applyTitle(ordered.filter(({ recommended }) => recommended))}
      description={
        others.length > 0 ? "The other files apply the same plan in other ways, or belong to it." : undefined
      }
      actions={
        <Button
          component="a"
          variant="default"
          size="compact-sm"
          leftSection={<DownloadIcon />}
          href={`/api/v1/plans/${kept.id}/artifacts.zip`}
          download
        >
          All as zip
        </Button>
      }
    >
      <Tabs value={tabOf(current)} onChange={choose} keepMounted={false}>
        <div className={classes.ways}>
          <Tabs.List>
            {tabs.map((artifact) => (
              <Tabs.Tab key={tabOf(artifact)} value={tabOf(artifact)}>
                {artifact.step !== null && `${artifact.step}. `}
                {kindTitle(artifact.kind)}
              </Tabs.Tab>
            ))}
          </Tabs.List>
          {others.length > 0 && (
            <NativeSelect
              size="xs"
              aria-label="Another way to apply it"
              value=""
              data={[
                { value: "", label: `${others.length} other ways` },
                ...others.map((artifact) => ({ value: tabOf(artifact), label: kindTitle(artifact.kind) })),
              ]}
              onChange={(event) => choose(event.currentTarget.value || null)}
            />
          )}
        </div>
        <Tabs.Panel value={tabOf(current)} pt="sm">
          <Artifact planId={kept.id} artifact={current} />
        </Tabs.Panel>
      </Tabs>
    </QuestionCard>
  );
}

/** What the others serve: the first file that is not the program which installs them. */
function mainOf(path: readonly PlanArtifact[]): PlanArtifact | undefined {
  return path.find(({ kind }) => kind !== "installer") ?? path[0];
}

function applyTitle(path: readonly PlanArtifact[]): string {
  const first = mainOf(path);
  if (!first) return "How is the plan applied?";
  const title = kindTitle(first.kind);
  return path.length > 1 ? `Apply it in ${path.length} steps.` : `Apply it: ${title} is the recommended way.`;
}

/** The recommended path of the node's platform first, in its order; the other ways behind it. */
function byRecommendation(a: PlanArtifact, b: PlanArtifact): number {
  return Number(b.recommended) - Number(a.recommended) || (a.step ?? 99) - (b.step ?? 99);
}

function Artifact({ planId, artifact }: { planId: string; artifact: PlanArtifact }) {
  const { filename, content, install, verify, rollback, avoid_when: avoidWhen } = artifact;
  return (
    <div className={classes.artifact}>
      <StateText>{whatItDoes(artifact)}</StateText>
      {avoidWhen && (
        <div>
          <div className={classes.label}>When not to use it</div>
          <StateText>{avoidWhen}</StateText>
        </div>
      )}
      <Group justify="space-between" gap="xs">
        <span className="hp-mono hp-anywhere">{filename}</span>
        <Group gap="xs">
          <CopyButton text={content} what={filename} label="Copy" />
          <Button
            size="compact-sm"
            leftSection={<DownloadIcon />}
            component="a"
            href={`/api/v1/plans/${planId}/artifacts/${encodeURIComponent(artifact.kind)}?filename=${encodeURIComponent(filename)}`}
            download
          >
            Download
          </Button>
        </Group>
      </Group>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a box that scrolls must be reachable by keyboard */}
      <section className={classes.content} tabIndex={0} aria-label={`Content of ${filename}`}>
        <pre>{content}</pre>
      </section>
      <div className={classes.commands}>
        {install && (
          <div>
            <div className={classes.label}>Install</div>
            <CommandLine command={install} what="the command that installs it" />
          </div>
        )}
        {verify && (
          <div>
            <div className={classes.label}>Verify (reads only)</div>
            <CommandLine command={verify} what="the command that verifies it" />
          </div>
        )}
        {rollback && (
          <div>
            <div className={classes.label}>Roll back</div>
            <CommandLine command={rollback} what="the command that rolls back" />
          </div>
        )}
      </div>
    </div>
  );
}
