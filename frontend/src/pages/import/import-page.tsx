import "@/theme/mantine-pages.css";
import { Button, Group } from "@mantine/core";
import { useEffect, useRef, useState } from "react";
import { useImportKubernetes, useLint } from "@/api/imports";
import { asApiError } from "@/api/problem";
import { useMayPlan } from "@/api/session";
import { KUBECTL_DUMP } from "@/components/connect/connect-commands";
import { CommandLine } from "@/components/ui/command-line";
import { PageHeader } from "@/components/ui/page-header";
import { QuestionCard } from "@/components/ui/question-card";
import { CardSkeleton } from "@/components/ui/skeletons";
import { ErrorState, StateText } from "@/components/ui/states";
import { takeLeftFiles } from "@/lib/dropped-files";
import { ClusterCard } from "./cluster-card";
import { type Dropped, sortedOut } from "./dropped";
import classes from "./import.module.css";
import { LintCard } from "./lint-card";

/** A cluster's dump or configuration files, read where they are dropped, with the text of the command line. */
export function ImportPage() {
  const cluster = useImportKubernetes();
  const lint = useLint();
  const mayPlan = useMayPlan();
  const [objects, setObjects] = useState<Record<string, unknown> | null>(null);
  const [checked, setChecked] = useState<Dropped[]>([]);
  const [isRefused, setRefused] = useState(false);
  const [problem, setProblem] = useState<unknown>(null);
  const take = async (files: readonly File[]) => {
    if (files.length === 0) return;
    cluster.reset();
    lint.reset();
    setProblem(null);
    try {
      const read = await Promise.all(
        files.map(async (file) => ({ name: file.name, text: await file.text() })),
      );
      const { objects: found, others } = sortedOut(read);
      setObjects(found);
      setRefused(found !== null && !mayPlan);
      setChecked(others);
      if (found && mayPlan) cluster.mutate({ objects: found, save: false });
      if (others.length > 0) lint.mutate(others);
    } catch (error) {
      setProblem(error);
    }
  };
  return (
    <>
      <PageHeader
        title="Import"
        headline={
          mayPlan
            ? "Drop a cluster's dump to see which nodes its huge pages do not fit, or files to see what they will do."
            : "Drop files to see what they will do."
        }
      />
      <div className={classes.stack}>
        <QuestionCard
          title="What do you have?"
          description={`${mayPlan ? "kubectl's JSON, a" : "A"} kernel command line, GRUB or sysctl files, pod specs, kubelet configuration, systemd units, postgresql.conf, my.cnf. Nothing is kept unless you say so.`}
        >
          <DropZone onFiles={(files) => void take(files)} />
          {mayPlan ? (
            <CommandLine command={KUBECTL_DUMP} />
          ) : (
            <StateText>A cluster's dump is planned by a planner, an approver or an administrator.</StateText>
          )}
        </QuestionCard>
        {isRefused && (
          <div role="alert">
            <StateText>
              This is a cluster's dump, which your role may not plan: ask a planner, an approver or an
              administrator.
            </StateText>
          </div>
        )}
        {problem !== null && <ErrorState error={problem} />}
        <div role="status" aria-live="polite">
          {(cluster.isPending || lint.isPending) && !cluster.data && (
            <StateText>Reading the files.</StateText>
          )}
        </div>
        {cluster.isPending && !cluster.data && <CardSkeleton height={240} />}
        {cluster.isError && <ErrorState error={cluster.error} />}
        {cluster.isError && asApiError(cluster.error).fieldErrors.some(({ field }) => field === "body") && (
          <div>
            <StateText>
              The command line plans a cluster of any size, with the same text, without the service:
            </StateText>
            <CommandLine command={`${KUBECTL_DUMP.replace(/ > .*$/, "")} | hugeplan plan -`} />
          </div>
        )}
        {cluster.data && (
          <ClusterCard
            found={cluster.data}
            keep={
              mayPlan && objects ? (
                <Button
                  size="sm"
                  variant="default"
                  loading={cluster.isPending}
                  onClick={() => cluster.mutate({ objects, save: true })}
                >
                  Keep as scenarios
                </Button>
              ) : null
            }
          />
        )}
        {lint.isError && <ErrorState error={lint.error} />}
        {lint.data && <LintCard report={lint.data} names={checked.map(({ name }) => name)} />}
      </div>
    </>
  );
}

/**
 * Takes files that are dropped anywhere in the window, and those that were dropped on another page before. Says whether
 * some are being dragged over it.
 */
function useDroppedFiles(onFiles: (files: readonly File[]) => void): boolean {
  const [isOver, setOver] = useState(false);
  const take = useRef(onFiles);
  useEffect(() => {
    take.current = onFiles;
  });
  useEffect(() => take.current(takeLeftFiles()), []);
  useEffect(() => {
    const withFiles = (handle: (event: DragEvent) => void) => (event: DragEvent) => {
      if (!event.dataTransfer?.types.includes("Files")) return;
      event.preventDefault();
      handle(event);
    };
    const handlers: Record<string, (event: DragEvent) => void> = {
      dragover: withFiles(() => setOver(true)),
      // Only when the pointer leaves the window itself: not from one part of it to another.
      dragleave: withFiles((event) => event.relatedTarget === null && setOver(false)),
      drop: withFiles((event) => {
        setOver(false);
        take.current([...(event.dataTransfer?.files ?? [])]);
      }),
    };
    const listening = Object.entries(handlers) as [keyof WindowEventMap, EventListener][];
    for (const [name, handler] of listening) window.addEventListener(name, handler);
    return () => {
      for (const [name, handler] of listening) window.removeEventListener(name, handler);
    };
  }, []);
  return isOver;
}

/** Files dropped on the page, chosen by hand, or pasted as text. */
function DropZone({ onFiles }: { onFiles: (files: readonly File[]) => void }) {
  const isOver = useDroppedFiles(onFiles);
  const paste = (text: string) => {
    if (text.trim() !== "") onFiles([new File([text], "pasted")]);
  };
  return (
    <section className={classes.drop} data-over={isOver} aria-label="Files">
      <Group gap="sm" justify="center">
        <span>Drop files here, or</span>
        <label className={classes.choose}>
          choose them
          <input
            type="file"
            multiple
            className={classes.input}
            onChange={(event) => {
              onFiles([...(event.currentTarget.files ?? [])]);
              event.currentTarget.value = "";
            }}
          />
        </label>
      </Group>
      <textarea
        className={classes.paste}
        rows={2}
        aria-label="Paste a file's text"
        placeholder="or paste a file's text"
        value=""
        onChange={(event) => paste(event.currentTarget.value)}
      />
    </section>
  );
}
