import { Button } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { nodeReportQuery } from "@/api/nodes";
import { CopyButton } from "@/components/ui/copy-button";
import { DownloadIcon } from "@/components/ui/icons";
import { QueryView } from "@/components/ui/query-view";
import { QuestionCard } from "@/components/ui/question-card";
import { CardSkeleton } from "@/components/ui/skeletons";
import { StateText } from "@/components/ui/states";
import { downloadText } from "@/lib/download";
import { formatBytes, formatCount } from "@/lib/units";
import classes from "./report-card.module.css";

/** A page that shows more of a document than this is slow to scroll and read by nobody. */
const MOST_LINES = 2_000;

/** The newest report as its agent sent it: what every figure of this page was made from. */
export function ReportCard({ nodeId, name }: { nodeId: string; name: string }) {
  const query = useQuery(nodeReportQuery(nodeId));
  return (
    <QueryView query={query} skeleton={<CardSkeleton />}>
      {(report) => {
        const text = JSON.stringify(report, null, 2);
        const lines = text.split("\n");
        return (
          <QuestionCard
            title={`The newest report has ${formatCount(lines.length)} lines.`}
            description={`${formatBytes(new Blob([text]).size)} of JSON, as the agent sent it. Every figure of this page was made from it and from earlier ones.`}
            actions={
              <>
                <CopyButton text={text} what="the report" />
                <Button
                  variant="default"
                  size="compact-sm"
                  leftSection={<DownloadIcon />}
                  onClick={() => downloadText(`${name}-report.json`, "application/json", text)}
                >
                  Download
                </Button>
              </>
            }
          >
            {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a box that scrolls must be reachable by keyboard */}
            <section className={classes.box} tabIndex={0} aria-label="Raw report">
              <pre className={classes.text}>{lines.slice(0, MOST_LINES).join("\n")}</pre>
            </section>
            {lines.length > MOST_LINES && (
              <StateText>
                The first {formatCount(MOST_LINES)} lines are shown; the download has all.
              </StateText>
            )}
          </QuestionCard>
        );
      }}
    </QueryView>
  );
}
