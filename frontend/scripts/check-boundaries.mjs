// Proves that the linter refuses imports against the layers: each line below must be an error, and its counterpart none.
import { spawnSync } from "node:child_process";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";

const CASES = [
  ["src/pages/compare/x.ts", "../node/latency-card", "refused"],
  ["src/pages/planner/form/x.ts", "../../node/latency-card", "refused"],
  ["src/pages/settings/x.ts", "@/pages/planner/form/planner-form", "refused"],
  ["src/components/ui/x.ts", "@/pages/node/node-page", "refused"],
  ["src/features/live/x.ts", "@/pages/node/node-page", "refused"],
  ["src/lib/x.ts", "@/components/ui/values", "refused"],
  ["src/api/x.ts", "@/components/ui/values", "refused"],
  ["src/components/ui/x.ts", "@/features/live/stream", "refused"],
  ["src/pages/compare/x.ts", "./compare-rows", "allowed"],
  ["src/pages/planner/form/x.ts", "../result/answer", "allowed"],
  ["src/pages/node/x.ts", "@/components/ui/values", "allowed"],
  ["src/pages/node/x.ts", "@/api/nodes", "allowed"],
  ["src/components/ui/x.ts", "@/lib/units", "allowed"],
];

// The rules go by path, so the cases have to lie where they would be written; they are gone again afterwards.
const files = CASES.map(([path], index) => path.replace("x.ts", `boundary-case-${index}.ts`));
const folders = files.map((file) => mkdirSync(dirname(file), { recursive: true }));
let report = "";
try {
  CASES.forEach(([, imported], index) => {
    writeFileSync(files[index], `import { a } from "${imported}";\n\nexport const b = a;\n`);
  });
  const run = spawnSync(
    "node_modules/.bin/biome",
    ["lint", "--only=style/noRestrictedImports", "--max-diagnostics=none", "--reporter=github", ...files],
    { encoding: "utf8" },
  );
  report = `${run.stdout}${run.stderr}`;
} finally {
  for (const file of files) rmSync(file, { force: true });
  for (const folder of folders) if (folder) rmSync(folder, { recursive: true });
}

const wrong = CASES.filter(([, , expected], index) => {
  const isRefused = report.includes(`boundary-case-${index}.ts`);
  return isRefused !== (expected === "refused");
});
for (const [path, imported, expected] of wrong)
  process.stderr.write(`${path} importing ${imported} must be ${expected}\n`);
if (wrong.length > 0) {
  process.stderr.write(report);
  process.exit(1);
}
process.stdout.write(`import boundaries: ${CASES.length} cases hold\n`);
