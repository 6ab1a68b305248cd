import { Button, Group, Tabs } from "@mantine/core";
import type { PlanArtifact } from "@/api/types";
import { CommandLine } from "@/components/ui/command-line";
import { CopyButton } from "@/components/ui/copy-button";
import { DownloadIcon } from "@/components/ui/icons";
import { QuestionCard } from "@/components/ui/question-card";
import { StateText } from "@/components/ui/states";
import { downloadText } from "@/lib/download";
import classes from "./artifacts-card.module.css";

const KIND_TITLES: Record<string, string> = {
  sysctl: "sysctl",
  kernel_command_line: "Kernel command line",
  cmdline: "Kernel command line",
  numa_script: "NUMA script",
  tmpfiles: "tmpfiles.d",
  systemd: "systemd",
  kubernetes: "Kubernetes",
  pod: "Pod",
  postgresql: "PostgreSQL",
  postgresql_conf: "postgresql.conf",
};

function kindTitle(kind: string): string {
  const words = kind.replaceAll(/[_-]/g, " ");
  return KIND_TITLES[kind] ?? words.charAt(0).toUpperCase() + words.slice(1);
}

/** A kind may have several files, one a pod. */
function tabOf({ kind, filename }: PlanArtifact): string {
  return `${kind}:${filename}`;
}

/** The files that apply the plan, to copy or to download, with the commands that prove and undo each. */
export function ArtifactsCard({ artifacts }: { artifacts: readonly PlanArtifact[] }) {
  const [first] = artifacts;
  return (
    <QuestionCard
      title="How is the plan applied?"
      description="Each file says how to verify that it took effect, and how to roll back."
    >
      {!first ? (
        <StateText>This plan changes nothing, so there is no file to apply.</StateText>
      ) : (
        <Tabs defaultValue={tabOf(first)} keepMounted={false}>
          <Tabs.List>
            {artifacts.map((artifact) => (
              <Tabs.Tab key={tabOf(artifact)} value={tabOf(artifact)}>
                {kindTitle(artifact.kind)}
              </Tabs.Tab>
            ))}
          </Tabs.List>
          {artifacts.map((artifact) => (
            <Tabs.Panel key={tabOf(artifact)} value={tabOf(artifact)} pt="sm">
              <Artifact artifact={artifact} />
            </Tabs.Panel>
          ))}
        </Tabs>
      )}
    </QuestionCard>
  );
}

function Artifact({ artifact }: { artifact: PlanArtifact }) {
  const { filename, media_type: mediaType, content, verify, rollback } = artifact;
  return (
    <div className={classes.artifact}>
      <Group justify="space-between" gap="xs">
        <span className="hp-mono">{filename}</span>
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
      {verify && (
        <div>
          <div className={classes.label}>Verify</div>
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
  );
}
