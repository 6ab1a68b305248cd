import type { ReactNode } from "react";
import type { Finding, Plan, PlanArtifact, SavedPlan, Verdict } from "@/api/types";
import { MemoryMap } from "@/components/memory-map/memory-map";
import { StateBadge } from "@/components/ui/badges";
import { sortFindings } from "@/components/ui/findings";
import { Unknown } from "@/components/ui/values";
import { pageSizeShort } from "@/lib/page-size";
import { subjectWords } from "@/lib/subject-words";
import { formatAbsolute, formatBytesDelta, formatCount, UNKNOWN } from "@/lib/units";
import { answerTexts } from "../answer/plan-figures";
import { planLook } from "../answer/verdict-line";
import { ledgerBars } from "../memory/ledger-parts";
import { whatItDoes } from "./artifact-texts";
import classes from "./kept-plan.module.css";

/** Lines of a list on the first page, which has the signature; the rest is on the second, counted. */
const FIRST_PAGE = { few: 3, many: 2 };
/** More pools than these leave less room for the lists. */
const FEW_POOLS = 4;
/** Bars of memory for which the first page has room. */
const FIRST_PAGE_BARS = 4;
/** A table of pools that is longer is set in columns over the width of the sheet. */
const LONG_TABLE = 8;
const TABLE_COLUMNS = 3;

/** The sheet to sign, the same on the screen and on paper, of what was kept alone: it never changes. */
export function Sheet({ kept }: { kept: SavedPlan }) {
  const { plan } = kept;
  const bars = ledgerBars(plan);
  const pools = changedPools(plan);
  const most = pools.length > FEW_POOLS ? FIRST_PAGE.many : FIRST_PAGE.few;
  const deciding = [
    ...plan.unknowns.map((text) => `Unknown: ${text}`),
    ...plan.assumptions.map((text) => `Assumed: ${text}`),
  ];
  const open = sortFindings(plan.findings).filter(({ state }) => state !== "ok");
  const conditions = kept.verdict ? conditionsOf(kept.verdict) : [];
  const gains = kept.verdict?.gains ?? [answerTexts(plan, kept.verdict).benefit];
  const steps = kept.artifacts.filter(({ recommended }) => recommended);
  const longLists = [
    { title: "What it buys, per database", texts: gains },
    ...conditions,
    { title: "All that decides", texts: deciding },
  ].filter(({ texts }) => texts.length > most);
  const hasSecondPage =
    open.length > 0 || steps.length > most || longLists.length > 0 || bars.length > FIRST_PAGE_BARS;
  return (
    <article className={classes.sheet} aria-label="The sheet to sign">
      <Head kept={kept} />
      <VerdictLine kept={kept} />
      <div className={pools.length > LONG_TABLE ? undefined : classes.columns}>
        <Part title="What changes">
          <Changes pools={pools} />
        </Part>
        <Part title="What it buys, per database">
          {gains.length === 0 ? (
            <p className={classes.line}>No database is in this plan.</p>
          ) : (
            <FirstTexts texts={gains} most={most} />
          )}
        </Part>
      </div>
      {bars.length <= FIRST_PAGE_BARS && <MemoryPart bars={bars} />}
      {conditions.length > 0 && (
        <div className={classes.columns}>
          {conditions.map(({ title, texts }) => (
            <Part key={title} title={title}>
              <FirstTexts texts={texts} most={most} />
            </Part>
          ))}
        </div>
      )}
      <Part title="What happens, how it is undone, how it is checked">
        {steps.length === 0 ? (
          <p className={classes.line}>Nothing is installed: the plan changes nothing.</p>
        ) : (
          <>
            <Steps steps={steps.slice(0, most)} />
            <More rest={steps.length - most} />
            <p className={classes.line}>
              Checked with <span className="hp-mono">sh verify.sh</span> of the files, or{" "}
              <span className="hp-mono">hugeplan verify</span>; each report of the node is compared with the
              plan. All undone with <span className="hp-mono">roll-back.sh</span>.
            </p>
          </>
        )}
      </Part>
      <div className={classes.columns}>
        <Part title={`Findings to know: ${open.length} of ${plan.findings.length} checks`}>
          <FindingLines findings={open.slice(0, most)} isShort />
          <More rest={open.length - most} />
        </Part>
        <Part title={`What decides: ${deciding.length} assumptions and unknowns`}>
          <FirstTexts texts={deciding} most={most} />
        </Part>
      </div>
      <footer className={classes.sign}>
        <span>Decided by{kept.approved_by ? `: ${kept.approved_by}` : ""}</span>
        <span>Date{kept.approved_at ? `: ${formatAbsolute(kept.approved_at)}` : ""}</span>
        <span>Signature</span>
      </footer>
      {hasSecondPage && (
        <section className={classes.second} aria-label="Second page">
          <h2>Plan {kept.short_digest}, second page</h2>
          {bars.length > FIRST_PAGE_BARS && <MemoryPart bars={bars} />}
          {open.length > 0 && (
            <Part title="All findings, each with what to do">
              <FindingLines findings={open} />
            </Part>
          )}
          {longLists.map(({ title, texts }) => (
            <Part key={title} title={title}>
              <Texts texts={texts} />
            </Part>
          ))}
          {steps.length > most && (
            <Part title="All that happens, and how each is undone">
              <Steps steps={steps} />
            </Part>
          )}
        </section>
      )}
    </article>
  );
}

function Part({ title, children }: { title: string; children: ReactNode }) {
  return (
    <section className={classes.part}>
      <h2>{title}</h2>
      {children}
    </section>
  );
}

function MemoryPart({ bars }: { bars: ReturnType<typeof ledgerBars> }) {
  return (
    <Part title="Memory under the plan">
      <div className={classes.map}>
        <MemoryMap bars={bars} legend="key" columns={bars.length > 2 ? 4 : bars.length > 1 ? 2 : 1} />
      </div>
    </Part>
  );
}

function More({ rest }: { rest: number }) {
  return rest > 0 ? <p className={classes.line}>and {rest} more, on the second page</p> : null;
}

function Head({ kept }: { kept: SavedPlan }) {
  return (
    <header className={classes.head}>
      <p className={classes.decision} data-testid="kept-headline">
        {kept.headline}
      </p>
      <dl className={classes.facts}>
        <Fact name="Plan" value={<span className="hp-mono">{kept.short_digest ?? UNKNOWN}</span>} />
        <Fact name="Node" value={kept.node_name ?? UNKNOWN} />
        <Fact
          name="Kept"
          value={`${formatAbsolute(kept.created_at)}${kept.author ? ` by ${kept.author}` : ""}`}
        />
        <Fact
          name="Sample"
          value={kept.sampled_at ? formatAbsolute(kept.sampled_at) : "none: typed by hand"}
        />
        <Fact name="Measured" value={kept.run_at ? formatAbsolute(kept.run_at) : "not on this node"} />
        <Fact name="Version" value={kept.model_version ?? UNKNOWN} />
      </dl>
      <p className={classes.digest}>
        Digest (SHA-256) <span className="hp-mono">{kept.digest ?? UNKNOWN}</span>
      </p>
    </header>
  );
}

function Fact({ name, value }: { name: string; value: ReactNode }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </div>
  );
}

function VerdictLine({ kept }: { kept: SavedPlan }) {
  const { verdict, plan } = kept;
  const risk = answerTexts(plan, verdict).risk;
  const look = verdict ? planLook(plan, verdict) : null;
  return (
    <div className={classes.verdict} data-state={look?.state ?? "unknown"}>
      <p>
        {look ? (
          <StateBadge state={look.state} text={look.text} />
        ) : (
          <Unknown why="It was kept without one." />
        )}{" "}
        {verdict?.reason}
      </p>
      <p>Risk of shortage: {risk}.</p>
    </div>
  );
}

type Pool = Plan["pools"][number];

/** Every pool that is there or planned, by NUMA node and page size. */
function changedPools({ pools }: Plan): readonly Pool[] {
  return pools
    .filter((pool) => pool.pages > 0 || pool.present_pages !== 0)
    .sort((a, b) => a.numa_node - b.numa_node || a.page_bytes - b.page_bytes);
}

/** The pools per NUMA node and page size, side by side where they are many. */
function Changes({ pools }: { pools: readonly Pool[] }) {
  if (pools.length === 0) return <p className={classes.line}>No huge pages.</p>;
  const rows = pools.length > LONG_TABLE ? Math.ceil(pools.length / TABLE_COLUMNS) : pools.length;
  const tables = Array.from({ length: Math.ceil(pools.length / rows) }, (_, index) =>
    pools.slice(index * rows, (index + 1) * rows),
  );
  return (
    <div className={tables.length > 1 ? classes.tables : undefined}>
      {tables.map((some) => (
        <PoolTable key={`${some[0]?.numa_node}:${some[0]?.page_bytes}`} pools={some} />
      ))}
    </div>
  );
}

function PoolTable({ pools }: { pools: readonly Pool[] }) {
  return (
    <table>
      <thead>
        <tr>
          <th>NUMA node</th>
          <th>Size</th>
          <th className="hp-num">Now</th>
          <th className="hp-num">Planned</th>
          <th className="hp-num">Change</th>
        </tr>
      </thead>
      <tbody>
        {pools.map((pool) => (
          <tr key={`${pool.numa_node}:${pool.page_bytes}`}>
            <td>{pool.numa_node}</td>
            <td>{pageSizeShort(pool.page_bytes)}</td>
            <td className="hp-num">
              {pool.present_pages === null ? UNKNOWN : formatCount(pool.present_pages)}
            </td>
            <td className="hp-num">{formatCount(pool.pages)}</td>
            <td className="hp-num">
              {pool.present_pages === null
                ? UNKNOWN
                : formatBytesDelta((pool.pages - pool.present_pages) * pool.page_bytes)}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function conditionsOf(verdict: Verdict): { title: string; texts: readonly string[] }[] {
  return [
    { title: "Approve if", texts: [...verdict.after.map((text) => `First: ${text}`), ...verdict.approve_if] },
    { title: "Do not approve if", texts: verdict.do_not_approve_if },
  ];
}

function Texts({ texts }: { texts: readonly string[] }) {
  return (
    <ul>
      {texts.map((text) => (
        <li key={text}>{text}</li>
      ))}
    </ul>
  );
}

function FirstTexts({ texts, most }: { texts: readonly string[]; most: number }) {
  return (
    <>
      <Texts texts={texts.slice(0, most)} />
      <More rest={texts.length - most} />
    </>
  );
}

/** The recommended path in its order: what is installed, what restarts for it, and the way back. */
function Steps({ steps }: { steps: readonly PlanArtifact[] }) {
  return (
    <ol>
      {steps.map((step) => (
        <li key={`${step.kind}:${step.filename}`}>
          <span className="hp-mono">{step.path ?? step.filename}</span>: {whatItDoes(step)} Undone:{" "}
          <Undone rollback={step.rollback} />
        </li>
      ))}
    </ol>
  );
}

/** Plans of before the installer: what stood in a file's place is kept beside it under such a name. */
const BRINGS_BACK = /\.(before|going)-|\/hugeplan-file .*\b(back|back-alone|end) /;
/** Commands that are longer are read on the screen, or in roll-back.sh: nobody signs a script. */
const LONGEST_COMMAND = 80;

/** The way back of a step: what a comment says is prose, the first short command stands for those beside it. */
function Undone({ rollback }: { rollback: string }) {
  const lines = rollback.split("\n").filter((line) => line.trim() !== "");
  if (lines.length === 0) return "nothing to undo.";
  const prose = lines.filter((line) => line.startsWith("#")).map((line) => line.replace(/^#\s*/, ""));
  const commands = lines.filter((line) => !line.startsWith("#")).map((line) => line.replace(/ &&$/, ""));
  const others = commands.filter((line) => !BRINGS_BACK.test(line));
  const command = others.find((line) => line.length <= LONGEST_COMMAND);
  const rest = others.length - (command ? 1 : 0);
  if (others.length < commands.length) prose.push("the file goes, and what stood in its place comes back.");
  return (
    <>
      {prose.join(" ")} {command && <span className="hp-mono">{command}</span>}
      {rest > 0 && (command ? ` and ${rest} more in roll-back.sh` : "The rest is in roll-back.sh.")}
    </>
  );
}

/** `isShort`: without what to do about each, which the second page has. */
function FindingLines({ findings, isShort = false }: { findings: readonly Finding[]; isShort?: boolean }) {
  if (findings.length === 0) return <p className={classes.line}>None.</p>;
  return (
    <ul className={classes.findings}>
      {findings.map((finding) => (
        <li key={`${finding.code}:${finding.subject}:${finding.title}`}>
          <StateBadge state={finding.state} />{" "}
          <span>
            {subjectWords(finding.subject)}: {finding.title}. {!isShort && finding.fix}
          </span>
        </li>
      ))}
    </ul>
  );
}
