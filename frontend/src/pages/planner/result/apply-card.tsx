import { Alert, Button, Group, NativeSelect, Tabs } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useContext, useState } from "react";
import { type PreviewInput, planFilesQuery } from "@/api/plans";
import type { PlanArtifact } from "@/api/types";
import { CommandLine } from "@/components/ui/command-line";
import { CopyButton } from "@/components/ui/copy-button";
import { DownloadIcon } from "@/components/ui/icons";
import { QuestionCard } from "@/components/ui/question-card";
import { CardSkeleton } from "@/components/ui/skeletons";
import { ErrorState, StateText } from "@/components/ui/states";
import { downloadBytes, downloadText } from "@/lib/download";
import { zipFiles } from "@/lib/zip";
import classes from "./apply-card.module.css";
import { kindTitle, whatItDoes } from "./artifact-texts";
import { OutOfDate } from "./out-of-date";

/** A kind may have several files, one per pod. */
function tabOf({ kind, filename }: PlanArtifact): string {
  return `${kind}:${filename}`;
}

interface ApplyCardProps {
  fits: boolean;
  /** Why the service hands out no files. */
  withheld: string | null;
  /** What the plan was asked with: its files are asked for by themselves. */
  input: PreviewInput;
}

/** The files that apply the plan: the recommended one first, with the commands that verify it and roll it back. */
export function ApplyCard({ fits, withheld, input }: ApplyCardProps) {
  const [shownAnyway, showAnyway] = useState(false);
  const isOutOfDate = useContext(OutOfDate);
  const files = useQuery({
    ...planFilesQuery(input, { fits }),
    // Edits are still coming: the files of this plan would be thrown away.
    enabled: (fits || shownAnyway) && !isOutOfDate,
  });
  const artifacts = files.data?.artifacts;
  if (!fits && (!shownAnyway || !artifacts)) {
    return (
      <QuestionCard title="Do not apply this plan: it does not fit the node.">
        <StateText>
          {withheld ?? ""} Change the plan first. Files that would be applied as they are can take the node
          down.
        </StateText>
        {files.isError && <ErrorState error={files.error} onRetry={() => void files.refetch()} bare />}
        <Button
          variant="default"
          className="hp-start"
          loading={files.isFetching}
          onClick={() => showAnyway(true)}
        >
          Show the files all the same
        </Button>
      </QuestionCard>
    );
  }
  if (!artifacts) {
    return files.isError ? (
      <ErrorState error={files.error} onRetry={() => void files.refetch()} />
    ) : (
      <div role="status" aria-label="Loading the files">
        <CardSkeleton height={140} />
      </div>
    );
  }
  return (
    // Nobody takes the files of an older answer away.
    <div inert={isOutOfDate || files.isPlaceholderData}>
      <Files artifacts={artifacts} fits={fits} withheld={files.data?.artifacts_withheld ?? null} />
    </div>
  );
}

interface FilesProps {
  artifacts: readonly PlanArtifact[];
  fits: boolean;
  withheld: string | null;
}

function Files({ artifacts, fits, withheld }: FilesProps) {
  const [chosen, choose] = useState<string | null>(null);
  const ordered = [...artifacts].sort(byRecommendation);
  const [first] = ordered;
  if (!first) {
    return (
      <QuestionCard title="How is the plan applied?">
        <StateText>{withheld ?? "This plan changes nothing, so there is no file to apply."}</StateText>
      </QuestionCard>
    );
  }
  // Files are named after databases: one that was renamed takes its tab with it, and the first one is shown.
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
        artifacts.length > 1
          ? "The other files apply the same plan in other ways, or belong to it."
          : undefined
      }
      actions={
        <Button
          variant="default"
          size="compact-sm"
          leftSection={<DownloadIcon />}
          onClick={() => downloadBytes("hugeplan-plan.zip", "application/zip", zipOf(artifacts))}
        >
          All as zip
        </Button>
      }
    >
      {!fits && (
        <Alert color="red" variant="light">
          This plan does not fit the node. Do not apply these files as they are.
        </Alert>
      )}
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
          <Artifact artifact={current} />
        </Tabs.Panel>
      </Tabs>
    </QuestionCard>
  );
}

function applyTitle(path: readonly PlanArtifact[]): string {
  const [first] = path;
  if (!first) return "How is the plan applied?";
  const title = kindTitle(first.kind);
  return path.length > 1
    ? `Apply it in ${path.length} steps, ${title} first.`
    : `Apply it: ${title} is the recommended way.`;
}

/** The recommended path of the node's platform first, in its order; the other ways behind it. */
function byRecommendation(a: PlanArtifact, b: PlanArtifact): number {
  return Number(b.recommended) - Number(a.recommended) || (a.step ?? 99) - (b.step ?? 99);
}

function zipOf(artifacts: readonly PlanArtifact[]): Uint8Array<ArrayBuffer> {
  const readme = artifacts
    .map(
      ({ filename, verify, rollback }) =>
        `${filename}\n  verify:    ${verify || "see the file"}\n  roll back: ${rollback || "see the file"}\n`,
    )
    .join("\n");
  return zipFiles([
    ...artifacts.map(({ filename, content }) => ({ name: filename.replace(/^\/+/, ""), text: content })),
    { name: "README.txt", text: `Files of one plan. Review them before they are installed.\n\n${readme}` },
  ]);
}

function Artifact({ artifact }: { artifact: PlanArtifact }) {
  const {
    filename,
    media_type: mediaType,
    content,
    install,
    verify,
    rollback,
    avoid_when: avoidWhen,
  } = artifact;
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
            onClick={() => downloadText(filename.split("/").pop() ?? filename, mediaType, content)}
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
