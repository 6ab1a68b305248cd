// Import boundaries, by where an import leads and not by how it is spelled: `@/pages/node/x` and `../../../node/x` are one.
// Layers go one way; a page imports no other page. A folder of a page holds at most 12 files that are no tests.
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, normalize, relative } from "node:path";
import ts from "typescript";

const SRC = "src";
/** What each layer may import besides itself. `root` are the files beside the layers: they put everything together. */
const MAY = {
  lib: ["theme"],
  theme: ["lib"],
  api: ["lib", "theme", "root"],
  components: ["api", "lib", "theme", "root"],
  pages: ["api", "components", "lib", "theme", "root", "test"],
  test: ["api", "components", "lib", "theme"],
};
const MOST_FILES = 12;

const layerOf = (path) => (path.includes("/") ? path.split("/")[0] : "root");
const pageOf = (path) => path.split("/")[1];

/** Why `from` may not import `to`, both as paths below src; undefined where it may. */
function refusal(from, to) {
  const [layer, target] = [layerOf(from), layerOf(to)];
  if (layer === "root") return undefined;
  if (layer === target)
    return layer === "pages" && pageOf(from) !== pageOf(to) ? "a page imports no other page" : undefined;
  if (/\.test\.tsx?$/.test(from) && target === "test") return undefined;
  return MAY[layer]?.includes(target) ? undefined : `${layer} does not import ${target}`;
}

function target(from, specifier) {
  if (specifier.startsWith("@/")) return specifier.slice(2);
  return specifier.startsWith(".") ? normalize(join(dirname(from), specifier)) : undefined;
}

// The rules themselves: each must refuse or allow what it says, however the import is spelled.
const CASES = [
  ["pages/compare/x.ts", "../node/latency-card", false],
  ["pages/planner/form/database/x.ts", "../../../node/latency-card", false],
  ["pages/settings/x.ts", "@/pages/planner/draft/draft", false],
  ["components/ui/x.ts", "@/pages/node/node-page", false],
  ["components/ui/x.ts", "../../pages/node/node-page", false],
  ["lib/x.ts", "../components/ui/values", false],
  ["api/x.ts", "@/components/ui/values", false],
  ["pages/compare/x.ts", "./compare-rows", true],
  ["pages/planner/form/database/x.ts", "../../compare/compare-card", true],
  ["pages/node/x.ts", "@/components/ui/values", true],
  ["components/ui/x.ts", "@/lib/units", true],
];
const problems = CASES.filter(
  ([from, specifier, isAllowed]) => (refusal(from, target(from, specifier)) === undefined) !== isAllowed,
).map(([from, specifier]) => `the rule for ${from} importing ${specifier} is broken`);

const files = readdirSync(SRC, { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile())
  .map((entry) => relative(SRC, join(entry.parentPath, entry.name)));
for (const from of files.filter((name) => /\.tsx?$/.test(name)))
  for (const { fileName } of ts.preProcessFile(readFileSync(join(SRC, from), "utf8")).importedFiles) {
    const to = target(from, fileName);
    const why = to && refusal(from, to);
    if (why) problems.push(`${from} imports ${fileName}: ${why}`);
  }

const rooms = new Map();
for (const name of files)
  if (/^pages\//.test(name) && !/\.test\.tsx?$/.test(name))
    rooms.set(dirname(name), (rooms.get(dirname(name)) ?? 0) + 1);
for (const [folder, count] of rooms)
  if (count > MOST_FILES) problems.push(`${folder} holds ${count} files, at most ${MOST_FILES}`);

for (const problem of problems) process.stderr.write(`${problem}\n`);
if (problems.length > 0) process.exit(1);
process.stdout.write(`import boundaries: ${files.length} files, ${CASES.length} cases hold\n`);
