// Proves that the linter refuses imports against the layers: each line below must be an error, and its counterpart none.
import { spawnSync } from "node:child_process";

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

let failed = 0;
for (const [path, imported, expected] of CASES) {
  const text = `import { a } from "${imported}";\n\nexport const b = a;\n`;
  // Only the one rule runs, so that the exit status is its verdict.
  const { status, stdout, stderr } = spawnSync(
    "node_modules/.bin/biome",
    ["lint", "--only=style/noRestrictedImports", `--stdin-file-path=${path}`],
    { input: text, encoding: "utf8" },
  );
  if ((status !== 0) !== (expected === "refused")) {
    failed += 1;
    process.stderr.write(`${path} importing ${imported} must be ${expected}\n${stdout}${stderr}\n`);
  }
}
if (failed > 0) process.exit(1);
process.stdout.write(`import boundaries: ${CASES.length} cases hold\n`);
