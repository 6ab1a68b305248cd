// Which style sheets of Mantine the dashboard needs: those of the components it imports, and of what they are made of.
// `node scripts/mantine-styles.mjs --write` writes src/theme/mantine.css; without it the file is checked.
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";

const CORE = "node_modules/@mantine/core";
const COMPONENTS = `${CORE}/esm/components`;
const OUT = "src/theme/mantine.css";
// Before all others: resets. The variables that the components read are written at run time, by the theme.
const BASE = ["baseline", "global"];

/** Names imported from @mantine/core anywhere in the sources. */
function importedNames() {
  const names = new Set();
  for (const file of readdirSync("src", { recursive: true }).filter((name) => /\.tsx?$/.test(name))) {
    const text = readFileSync(join("src", file), "utf8");
    for (const [, list] of text.matchAll(/import \{([^}]*)\} from "@mantine\/core"/g))
      for (const name of list.split(",")) names.add(name.replace(/\btype\b/, "").trim());
  }
  return names;
}

/** Style modules of a file and of all it imports inside the package. */
function modulesOf(file, seen, found) {
  if (seen.has(file) || !existsSync(file)) return;
  seen.add(file);
  const text = readFileSync(file, "utf8");
  for (const [, path] of text.matchAll(/from "(\.[^"]+)"/g)) {
    const target = resolve(dirname(file), path);
    if (target.endsWith(".module.mjs")) found.add(basename(target, ".module.mjs"));
    else modulesOf(target, seen, found);
  }
}

function sheets() {
  const found = new Set();
  const seen = new Set();
  const names = importedNames();
  for (const file of readdirSync(COMPONENTS, { recursive: true }))
    if (file.endsWith(".mjs") && names.has(basename(file, ".mjs")))
      modulesOf(resolve(COMPONENTS, file), seen, found);
  const available = [...found].filter((name) => existsSync(`${CORE}/styles/${name}.css`));
  // The package's own order: what is built from another stands after it.
  const whole = readFileSync(`${CORE}/styles.css`, "utf8");
  const place = (name) => {
    const css = readFileSync(`${CORE}/styles/${name}.css`, "utf8");
    const first = /\.m_[0-9a-f]+/.exec(css)?.[0];
    return first ? whole.indexOf(first) : -1;
  };
  return available.sort((a, b) => place(a) - place(b));
}

const text = [
  "/* Written by scripts/mantine-styles.mjs: only what the dashboard uses. */",
  ...[...BASE, ...sheets()].map((name) => `@import "@mantine/core/styles/${name}.css";`),
  "",
].join("\n");

if (process.argv.includes("--write")) writeFileSync(OUT, text);
else if (!existsSync(OUT) || readFileSync(OUT, "utf8") !== text) {
  process.stderr.write(`${OUT} is not current; run: npm run styles\n`);
  process.exit(1);
}
