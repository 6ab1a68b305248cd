import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { accessSync, chmodSync, constants, mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { command, freePort, python } from "./hugeplan-server";

const run = promisify(execFile);
const POOL = "/sys/devices/system/node/node0/hugepages/hugepages-2048kB/nr_hugepages";
const SHARED_BUFFERS = "241MB";
const AS_NOBODY = ["--reuid=nobody", "--clear-groups"];
/** Others hold the pools for up to a minute each; `hugeplan apply` waits a second for them, and then says so. */
const LOCK_SECONDS = 240;
const BUSY = "another program held huge pages";

/**
 * Cleans up when its input ends: also when the test was killed. Its arguments are the server's folder, pg_ctl and
 * hugeplan. Pools are rolled back only where the last line that it was told is "applied".
 */
const KEEPER = `
trap '' TERM INT HUP
applied=
while read -r line; do applied=$line; done
if [ -f "$1/data/postmaster.pid" ]; then
  setpriv ${AS_NOBODY.join(" ")} "$2" -D "$1/data" -m immediate -w stop
fi
status=0
if [ "$applied" = applied ]; then
  tries=${LOCK_SECONDS}
  while :; do
    said=$("$3" apply --roll-back 2>&1); status=$?
    tries=$((tries - 1))
    case $said in *"${BUSY}"*) [ "$tries" -gt 0 ] || break ;; *) break ;; esac
  done
  printf '%s\n' "$said"
fi
rm -rf "$1"
exit $status
`;

/**
 * A PostgreSQL of this test, which an ordinary user runs on the machine's real pool of 2M pages. Its port is its own, so
 * that the key by which the agent reports it is no other server's.
 */
export class OwnPostgres {
  private keeper: ChildProcess | undefined;

  private constructor(
    private readonly programs: string,
    private readonly folder: string,
    readonly port: number,
  ) {}

  /** Why the test cannot run here; null where it can. */
  static async whyNot(): Promise<string | null> {
    if (process.geteuid?.() !== 0) return "only root may change the node's pools";
    try {
      accessSync(POOL, constants.W_OK);
    } catch {
      return "this kernel has no writable pool of 2M pages on NUMA node 0";
    }
    return run("setpriv", ["--version"]).then(
      () => null,
      () => "setpriv is not installed",
    );
  }

  static async create(): Promise<OwnPostgres> {
    const { stdout } = await run(python(), [
      "-c",
      "from hugeplan.embedded import programs_dir; print(programs_dir())",
    ]);
    const folder = mkdtempSync(join(tmpdir(), "hp-own-pg-"));
    chmodSync(folder, 0o755);
    await run("install", ["-d", "-m", "700", "-o", "nobody", join(folder, "data")]);
    const server = new OwnPostgres(stdout.trim(), folder, await freePort());
    await server.asNobody("initdb", "-D", join(folder, "data"), "-A", "trust", "-U", "postgres", "--no-sync");
    return server;
  }

  /** From here on the keeper cleans up. */
  keep(): void {
    this.keeper = spawn(
      "sh",
      ["-c", KEEPER, "keeper", this.folder, join(this.programs, "pg_ctl"), command("hugeplan")],
      { stdio: ["pipe", "inherit", "inherit"] },
    );
  }

  /** `hugeplan apply` of a plan's document, and what it said. Why not, where the kernel finds no such pages. */
  async apply(path: string): Promise<{ whyNot: string | null; said: string }> {
    this.keeper?.stdin?.write("applied\n");
    const deadline = Date.now() + LOCK_SECONDS * 1000;
    for (;;) {
      const { code, said } = await run(command("hugeplan"), ["apply", path, "--yes"]).then(
        ({ stdout }) => ({ code: 0, said: stdout }),
        (error: { code: number; stdout: string; stderr: string }) => ({
          code: error.code,
          said: `${error.stdout}${error.stderr}`.trim(),
        }),
      );
      const busy = said.includes(BUSY);
      if (busy && Date.now() < deadline) continue;
      if (code === 1) {
        this.keeper?.stdin?.write("refused\n");
        return { whyNot: busy ? said : `the kernel has no such pages now: ${said}`, said };
      }
      // 3, 4 and 6: the pages stand; what verify finds wrong is the server's, which does not run on them yet.
      if (![0, 3, 4, 6].includes(code)) throw new Error(`hugeplan apply ended with status ${code}: ${said}`);
      return { whyNot: null, said };
    }
  }

  /** Starts the server. Why not, where it wants pages, and somebody else has taken them since they were reserved. */
  async start(hugePages: "on" | "off"): Promise<string | null> {
    const data = join(this.folder, "data");
    const settings = {
      shared_buffers: SHARED_BUFFERS,
      huge_pages: hugePages,
      listen_addresses: "",
      port: this.port,
    };
    const options = Object.entries(settings).map(([name, value]) => `-c ${name}=${value}`);
    const log = join(data, `log-${hugePages}`);
    // The server would keep a pipe open: pg_ctl's output goes to its log.
    const child = spawn(
      "setpriv",
      [
        ...[...AS_NOBODY, join(this.programs, "pg_ctl"), "-D", data, "-w", "-t", "120", "-l", log],
        ...["-o", `${options.join(" ")} -k ${data}`, "start"],
      ],
      { cwd: "/", stdio: "ignore" },
    );
    const [status] = await once(child, "exit");
    if (status === 0) return null;
    const said = readFileSync(log, "utf8");
    if (hugePages === "on" && said.includes("could not map anonymous shared memory"))
      return `another program took the reserved pages: ${said}`;
    throw new Error(said);
  }

  async stop(): Promise<void> {
    await this.asNobody("pg_ctl", "-D", join(this.folder, "data"), "-m", "fast", "-w", "-t", "120", "stop");
  }

  /** Stops the server, gives the pages back and forgets its files. */
  async giveBack(): Promise<void> {
    if (this.keeper === undefined) await run("rm", ["-rf", this.folder]);
    if (this.keeper === undefined || this.keeper.exitCode !== null) return;
    const ended = once(this.keeper, "exit");
    this.keeper.stdin?.end();
    const [status] = await ended;
    if (status !== 0) throw new Error(`hugeplan apply --roll-back ended with status ${status}`);
  }

  private asNobody(program: string, ...words: string[]) {
    return run("setpriv", [...AS_NOBODY, join(this.programs, program), ...words], { cwd: "/" });
  }
}
