// Which style sheets of Mantine the dashboard needs: those of the components it imports, and of what they are made of.
// What the shell and the first page use is one file, what the other pages use besides is another, which they import.
// `node scripts/mantine-styles.mjs --write` writes both; without it they are checked.
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";

const CORE = "node_modules/@mantine/core";
const COMPONENTS = `${CORE}/esm/components`;
const FIRST = "src/theme/mantine.css";
const PAGES = "src/theme/mantine-pages.css";
const ROUTER = "src/router.tsx";
const FIRST_PAGE = "src/pages/overview/overview-page.tsx";
// Before all others: resets. The variables that the components read are written at run time, by the theme.
const BASE = ["baseline", "global"];

const sources = (folder) =>
  readdirSync(folder, { recursive: true })
    .filter((name) => /\.tsx?$/.test(name) && !name.includes(".test."))
    .map((name) => join(folder, name));

function fileOf(from, path) {
  const at = path.startsWith("@/") ? join("src", path.slice(2)) : join(dirname(from), path);
  return [`${at}.tsx`, `${at}.ts`, join(at, "index.ts"), join(at, "index.tsx")].find((name) =>
    existsSync(name),
  );
}

/** The sources that a file imports at once or later; the router's pages are entries of their own. */
function reached(file, found = new Set()) {
  if (file === undefined || found.has(file)) return found;
  found.add(file);
  const text = readFileSync(file, "utf8");
  for (const [, path] of text.matchAll(/from "((?:@\/|\.)[^"]+)"/g)) reached(fileOf(file, path), found);
  if (file !== ROUTER)
    for (const [, path] of text.matchAll(/import\("([^"]+)"\)/g)) reached(fileOf(file, path), found);
  return found;
}

/** Names that the files given import from @mantine/core. */
function importedNames(files) {
  const names = new Set();
  for (const file of files)
    for (const [, list] of readFileSync(file, "utf8").matchAll(/import \{([^}]*)\} from "@mantine\/core"/g))
      for (const name of list.split(",")) names.add(name.replace(/\btype\b/, "").trim());
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

function sheets(files) {
  const found = new Set();
  const seen = new Set();
  const names = importedNames(files);
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

const all = sheets(sources("src"));
const first = sheets([...reached("src/main.tsx"), ...reached(FIRST_PAGE)]);
const written = (what, names) =>
  [
    `/* Written by scripts/mantine-styles.mjs: ${what}. */`,
    ...names.map((name) => `@import "@mantine/core/styles/${name}.css";`),
    "",
  ].join("\n");
const files = {
  [FIRST]: written("what the shell and the first page use", [...BASE, ...first]),
  [PAGES]: written(
    "what the other pages use besides",
    all.filter((name) => !first.includes(name)),
  ),
};

const pages = [...readFileSync(ROUTER, "utf8").matchAll(/import\("([^"]+)"\)/g)].map(([, path]) =>
  fileOf(ROUTER, path),
);
let failed = false;
for (const page of pages) {
  if (page === FIRST_PAGE || readFileSync(page, "utf8").startsWith('import "@/theme/mantine-pages.css";\n'))
    continue;
  process.stderr.write(`${page} does not begin with: import "@/theme/mantine-pages.css"\n`);
  failed = true;
}
for (const [file, text] of Object.entries(files)) {
  if (process.argv.includes("--write")) writeFileSync(file, text);
  else if (!existsSync(file) || readFileSync(file, "utf8") !== text) {
    process.stderr.write(`${file} is not current; run: npm run styles\n`);
    failed = true;
  }
}
if (failed) process.exit(1);
