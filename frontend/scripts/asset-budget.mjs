// What a page sends over the wire the first time, compressed: the entry, its style sheets, and the page's own chunks.
// Vite's manifest says which file imports which.
import { existsSync, readFileSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";

const DIST = "dist";
const KIB = 1024;
const BUDGETS = [
  { page: "index.html", name: "first page (overview)", mostKib: 145 },
  // What a reader of the overview waits for before the planner works; a chart comes with the fold that shows it.
  { page: "src/pages/planner/planner-page.tsx", name: "planner beyond the first page", mostKib: 130 },
  {
    page: "src/pages/planner/gains/pool-benefit-chart.tsx",
    name: "a chart beyond the first page",
    mostKib: 130,
  },
];

const manifest = JSON.parse(readFileSync(join(DIST, ".vite/manifest.json"), "utf8"));

function wireBytes(file) {
  const path = join(DIST, file);
  return statSync(existsSync(`${path}.br`) ? `${path}.br` : path).size;
}

/** All files of a chunk and of what it imports at once; what is imported later is not counted. */
function filesOf(key, found = new Set()) {
  const chunk = manifest[key];
  if (!chunk || found.has(chunk.file)) return found;
  found.add(chunk.file);
  for (const css of chunk.css ?? []) found.add(css);
  for (const imported of chunk.imports ?? []) filesOf(imported, found);
  return found;
}

const html = statSync(join(DIST, "index.html")).size;
const first = new Set([...filesOf("index.html"), "start.js", "favicon.svg"]);
let failed = false;
for (const { page, name, mostKib } of BUDGETS) {
  const isFirst = page === "index.html";
  const files = isFirst ? [...first] : [...filesOf(page)].filter((file) => !first.has(file));
  const bytes = files.reduce((sum, file) => sum + wireBytes(file), isFirst ? html : 0);
  const verdict = bytes <= mostKib * KIB ? "ok" : "over budget";
  process.stdout.write(
    `${name}: ${(bytes / KIB).toFixed(1)} KiB of ${mostKib} KiB, ${files.length} files, ${verdict}\n`,
  );
  if (bytes > mostKib * KIB) {
    failed = true;
    for (const file of files.sort((a, b) => wireBytes(b) - wireBytes(a)).slice(0, 12))
      process.stdout.write(`  ${(wireBytes(file) / KIB).toFixed(1)} KiB ${file}\n`);
  }
}
// The manifest is for this check alone.
rmSync(join(DIST, ".vite"), { recursive: true });
if (failed) process.exit(1);
