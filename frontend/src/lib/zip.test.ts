import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { zipFiles } from "./zip";

it("makes an archive that another program reads and finds whole", () => {
  const folder = mkdtempSync(join(tmpdir(), "hp-zip-"));
  try {
    const path = join(folder, "plan.zip");
    const files = [
      { name: "etc/sysctl.d/60-hugeplan.conf", text: "vm.nr_hugepages = 4268\n" },
      { name: "größe.txt", text: "ä\n" },
    ];
    writeFileSync(path, zipFiles(files));
    const script =
      "import json,sys,zipfile; z=zipfile.ZipFile(sys.argv[1]); assert z.testzip() is None; " +
      "print(json.dumps([[i.filename, z.read(i).decode()] for i in z.infolist()]))";
    const read = JSON.parse(execFileSync("python3", ["-c", script, path], { encoding: "utf8" }));
    expect(read).toEqual(files.map(({ name, text }) => [name, text]));
    expect(zipFiles(files)).toEqual(zipFiles(files));
  } finally {
    rmSync(folder, { recursive: true });
  }
});
