import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { accessSync, chmodSync, constants, mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";
import { command, python, REPOSITORY } from "./hugeplan-server";

const run = promisify(execFile);
const POOL = "/sys/devices/system/node/node0/hugepages/hugepages-2048kB/nr_hugepages";
/** No server of another suite has this size, so that its segment tells it apart. */
export const SHARED_BUFFERS = "241MB";
const AS_NOBODY = ["--reuid=nobody", "--clear-groups"];
/** Others hold the pools for up to a minute each. */
const LOCK_SECONDS = "240";

/**
 * Runs while the pools are held, and cleans up when its input ends: also when the test was killed. Its arguments are the
 * server's folder, pg_ctl and hugeplan. Pools are rolled back only after a line said that this test has applied a plan.
 */
const KEEPER = `
trap '' TERM INT HUP
echo held
applied=
while read -r line; do applied=yes; done
if [ -f "$1/data/postmaster.pid" ]; then
  setpriv ${AS_NOBODY.join(" ")} "$2" -D "$1/data" -m immediate -w stop
fi
status=0
if [ -n "$applied" ]; then "$3" apply --roll-back; status=$?; fi
rm -rf "$1"
exit $status
`;

/** A PostgreSQL of this test, which an ordinary user runs on the machine's real pool of 2M pages. */
export class OwnPostgres {
  private keeper: ChildProcess | undefined;

  private constructor(
    private readonly programs: string,
    private readonly folder: string,
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
    const server = new OwnPostgres(stdout.trim(), folder);
    await server.asNobody("initdb", "-D", join(folder, "data"), "-A", "trust", "-U", "postgres", "--no-sync");
    return server;
  }

  /** Waits for the lock under which all of this project's tests change pools. Why not, where others have the pages. */
  async holdPools(): Promise<string | null> {
    this.keeper = spawn(
      python(),
      [
        join(REPOSITORY, "deploy/suites/with_pools.py"),
        ...["sh", "-c", KEEPER, "keeper", this.folder, join(this.programs, "pg_ctl"), command("hugeplan")],
      ],
      {
        env: { ...process.env, HUGEPLAN_HUGE_PAGES_LOCK_SECONDS: LOCK_SECONDS },
        stdio: ["pipe", "pipe", "inherit"],
      },
    );
    const lines = createInterface({ input: this.keeper.stdout as NodeJS.ReadableStream });
    const first = await Promise.race([once(lines, "line").then(([line]) => line), once(this.keeper, "exit")]);
    if (first !== "held") return "another test held the pools for too long";
    const pages = pagesOfPool();
    return pages === 0 ? null : `the pool has ${pages} pages of somebody else`;
  }

  /** `hugeplan apply` of a plan's document; the pages that stand then. */
  async apply(path: string): Promise<number> {
    this.keeper?.stdin?.write("applied\n");
    const { code, text } = await run(command("hugeplan"), ["apply", path, "--yes"]).then(
      ({ stdout }) => ({ code: 0, text: stdout }),
      (error: { code: number; stderr: string }) => ({ code: error.code, text: error.stderr }),
    );
    // 3 and 6: the pages stand, and the server does not run yet.
    if (![0, 3, 6].includes(code)) throw new Error(`hugeplan apply ended with status ${code}: ${text}`);
    return pagesOfPool();
  }

  /** Starts the server, which ends at once where the pages do not suffice. */
  async startOnHugePages(): Promise<void> {
    const data = join(this.folder, "data");
    const options = `-c shared_buffers=${SHARED_BUFFERS} -c huge_pages=on -c listen_addresses= -k ${data}`;
    // The server would keep a pipe open: pg_ctl's output goes to its log.
    const child = spawn(
      "setpriv",
      [
        ...AS_NOBODY,
        join(this.programs, "pg_ctl"),
        ...["-D", data, "-w", "-t", "60", "-l", join(data, "log"), "-o", options, "start"],
      ],
      { cwd: "/", stdio: "ignore" },
    );
    const [status] = await once(child, "exit");
    if (status !== 0) throw new Error(readFileSync(join(data, "log"), "utf8"));
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

/** Pages of 2M on NUMA node 0. */
function pagesOfPool(): number {
  return Number(readFileSync(POOL, "ascii"));
}
