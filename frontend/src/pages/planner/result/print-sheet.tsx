import { useQuery } from "@tanstack/react-query";
import { useContext } from "react";
import { type PreviewInput, planFilesQuery } from "@/api/plans";
import { sessionQuery } from "@/api/session";
import type { NodeDetail, PlanPreview } from "@/api/types";
import { MemoryMap } from "@/components/memory-map/memory-map";
import { memoryBars } from "@/components/memory-map/node-memory";
import { formatAbsolute, formatBytes } from "@/lib/units";
import { useNow } from "@/lib/use-now";
import { answerTexts } from "./answer";
import { ledgerBars } from "./ledger-parts";
import { OutOfDate } from "./out-of-date";
import { fits } from "./plan-state";
import classes from "./print-sheet.module.css";

const MOST_FINDINGS = 4;
const MOST_INPUTS = 8;

interface PrintSheetProps {
  shown: PlanPreview;
  /** What the plan was asked with. */
  input: PreviewInput;
  title: string;
  /** The saved version that is printed; null for unsaved inputs. */
  version: number | null;
  node: NodeDetail | undefined;
}

/** One page to sign: seen on paper only. */
export function PrintSheet({ shown, input, title, version, node }: PrintSheetProps) {
  const { plan } = shown;
  const { data: session } = useQuery(sessionQuery());
  const now = useNow();
  const texts = answerTexts(plan);
  const open = plan.findings.filter(({ state }) => state !== "ok");
  const observed = node && node.name === plan.node ? memoryBars(node.name, node.sample) : undefined;
  const bars = ledgerBars(plan, observed);
  const beside = barsBeside(bars.length);
  const databases = plan.instances.map(
    ({ name, demand }) =>
      `${name}: ${demand.engine} ${demand.version ?? ""}, pool ${formatBytes(demand.pool_bytes)}, ${demand.connections ?? "unknown"} connections`,
  );
  const assumed = [
    ...plan.unknowns.map((note) => `unknown: ${note}`),
    ...plan.assumptions.map((note) => `assumed: ${note}`),
  ];
  return (
    <article className={classes.sheet} aria-hidden="true">
      <header>
        <h1>
          {title} on {plan.node}
          {node?.synthetic ? " (synthetic node)" : ""}
        </h1>
        <p>
          {version === null ? "Unsaved inputs" : `Version ${version}`}, {formatAbsolute(now.toISOString())}
          {session ? `, prepared by ${session.name}` : ""}
          <StaleMark />
        </p>
      </header>
      <p className={classes.decision}>{plan.headline}</p>
      <table className={classes.facts}>
        <tbody>
          <tr>
            <th>Huge pages</th>
            <td>{texts.change}</td>
            <th>Gain, likely (range)</th>
            <td>{texts.benefit}</td>
          </tr>
          <tr>
            <th>Risk of shortage</th>
            <td>{texts.risk}</td>
            <th>Confidence</th>
            <td>{texts.confidence}</td>
          </tr>
          <tr>
            <th>Memory in pools</th>
            <td>{formatBytes(plan.net_memory.locked_bytes)}</td>
            <th>Idle in pools</th>
            <td>{formatBytes(plan.net_memory.idle_bytes)}</td>
          </tr>
        </tbody>
      </table>
      <section className={classes.before} data-beside={beside}>
        <h2>Memory before and after</h2>
        <MemoryMap bars={bars} names={{ ghost: "Planned", real: "Now" }} legend="line" columns={beside} />
      </section>
      <h2>Open findings: {open.length}</h2>
      <ul>
        {open.slice(0, MOST_FINDINGS).map((finding) => (
          <li key={`${finding.code}:${finding.subject}`}>
            <strong>{finding.state}</strong>: {finding.title}. {finding.fix}
          </li>
        ))}
        {open.length > MOST_FINDINGS && <li>and {open.length - MOST_FINDINGS} more in the dashboard</li>}
      </ul>
      <h2>Inputs</h2>
      <ul>
        {[...databases, ...assumed].slice(0, MOST_INPUTS).map((text) => (
          <li key={text}>{text}</li>
        ))}
      </ul>
      <p className={classes.files}>
        Files: <FileNames shown={shown} input={input} />
      </p>
      <footer className={classes.sign}>
        <span>Decided by</span>
        <span>Date</span>
        <span>Signature</span>
      </footer>
    </article>
  );
}

/** How many NUMA nodes stand side by side, so that the picture of all of them fits on the page. */
function barsBeside(count: number): 1 | 2 | 4 {
  if (count <= 2) return 1;
  return count <= 4 ? 2 : 4;
}

/** By itself, so that the sheet is not drawn again for it. */
function StaleMark() {
  return useContext(OutOfDate) ? ". This plan is not up to date with the form." : "";
}

function FileNames({ shown, input }: Pick<PrintSheetProps, "shown" | "input">) {
  const isOutOfDate = useContext(OutOfDate);
  const fitting = fits(shown.plan);
  const files = useQuery({ ...planFilesQuery(input, { fits: true }), enabled: fitting && !isOutOfDate });
  if (!fitting) return `none. ${shown.artifacts_withheld ?? "The plan does not fit."}`;
  if (!files.data?.artifacts || files.isPlaceholderData) return "not known: the server has not answered yet";
  return files.data.artifacts.map(({ filename }) => filename).join(", ") || "none; the plan changes nothing";
}
