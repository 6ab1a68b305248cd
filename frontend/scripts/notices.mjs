// dist/third-party-notices.txt: the licences of every package whose code may be in the bundle, in a fixed order.
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const locked = Object.entries(JSON.parse(readFileSync("package-lock.json", "utf8")).packages);
const folders = locked
  .filter(([path, about]) => path !== "" && !about.dev && !about.devOptional)
  .map(([path]) => path);
const parts = folders.map((folder) => {
  const about = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  const files = readdirSync(folder)
    .filter((name) => /^(licen[cs]e|notice|copying)/i.test(name))
    .sort();
  const texts = files.map((name) => readFileSync(join(folder, name), "utf8").trim());
  return { name: `${about.name} ${about.version}`, licence: about.license, texts };
});
const unnamed = parts.filter((part) => typeof part.licence !== "string");
if (parts.length === 0 || unnamed.length > 0) {
  throw new Error(
    `packages without a licence: ${unnamed.map((part) => part.name).join(", ") || "none were listed"}`,
  );
}
parts.sort((one, other) => (one.name < other.name ? -1 : 1));
const text = parts
  .map((part) => [`${part.name}  (${part.licence})`, ...part.texts].join("\n\n"))
  .join(`\n\n${"-".repeat(100)}\n\n`);
writeFileSync("dist/third-party-notices.txt", `Parts of the user interface that others wrote.\n\n${text}\n`);
