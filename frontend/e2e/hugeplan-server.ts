import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const run = promisify(execFile);
export const REPOSITORY = fileURLToPath(new URL("../../", import.meta.url));
/** Migrations and PostgreSQL take seconds; a machine that is busy with other work takes its time. */
const START_LIMIT_MS = 150_000;

/** The command of the house: on the PATH (as `make test` has it), else in the house's own environment. */
export function command(name: string): string {
  const folders = [...(process.env.PATH ?? "").split(delimiter), join(REPOSITORY, ".venv/bin")];
  const found = folders.map((folder) => join(folder, name)).find((path) => existsSync(path));
  if (!found) throw new Error(`${name} was not found; run make setup first`);
  return found;
}

/** The interpreter that has the house's packages. */
export function python(): string {
  return join(dirname(command("hugeplan")), "python");
}

export async function freePort(): Promise<number> {
  const server = createServer();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  server.close();
  await once(server, "close");
  if (address === null || typeof address === "string") throw new Error("no free TCP port");
  return address.port;
}

/** What tests change in a report. */
interface RecordedReport {
  machine_id: string;
  inventory: { numa_nodes: { id: number }[]; cpu?: object };
  sample: {
    memory: Record<string, number | null>;
    numa: { id: number }[];
    pools: { numa_node: number; page_bytes: number; nr_hugepages: number; free_hugepages: number }[];
    global_pools: Record<string, number | null>[];
  };
}

/** A real server on an embedded PostgreSQL of its own, built by the migrations, that serves the built interface. */
export class HugeplanServer {
  private session: { name: string; value: string; url: string } | undefined;
  private signedInAt = 0;

  private constructor(
    private process: ChildProcess,
    private readonly folder: string,
    private readonly port: number,
    readonly url: string,
  ) {}

  static async start(): Promise<HugeplanServer> {
    const folder = await mkdtemp(join(tmpdir(), "hp-e2e-"));
    const port = await freePort();
    const child = HugeplanServer.spawn(folder, port);
    return new HugeplanServer(child, folder, port, await HugeplanServer.whenReady(child));
  }

  private static spawn(folder: string, port: number): ChildProcess {
    return spawn(command("hugeplan"), ["demo", "--state-dir", folder, "--port", String(port)], {
      cwd: folder,
      env: {
        ...process.env,
        HUGEPLAN_UI_DIR: join(REPOSITORY, "frontend/dist"),
        HUGEPLAN_REQUESTS_PER_MINUTE: "100000",
      },
      stdio: ["ignore", "pipe", "pipe"],
    });
  }

  /** Ends the server and its database; what they hold stays. */
  async goAway(): Promise<void> {
    const ended = once(this.process, "exit");
    this.process.kill("SIGTERM");
    await ended;
  }

  /** The same server again, on the same address and database. */
  async comeBack(): Promise<void> {
    this.process = HugeplanServer.spawn(this.folder, this.port);
    await HugeplanServer.whenReady(this.process);
  }

  /** A synthetic fleet in the server's database. It takes the place of the synthetic nodes that are there. */
  async seed(nodes: number, history: "with history" | "newest state only" = "with history"): Promise<void> {
    const socket = (await readFile(join(this.folder, "postgresql.socket"), "utf8")).trim();
    await run(
      python(),
      [
        "-m",
        "tools.seed",
        "--nodes",
        String(nodes),
        ...(history === "newest state only" ? ["--samples", "1", "--history-days", "0"] : []),
      ],
      {
        cwd: join(REPOSITORY, "backend"),
        env: { ...process.env, HUGEPLAN_DATABASE_URL: `postgresql://hugeplan@/hugeplan?host=${socket}` },
        timeout: 240_000,
      },
    );
  }

  /** The id of the first node whose name holds `text`. */
  async nodeNamed(text: string): Promise<string> {
    const answer = await fetch(`${this.url}/api/v1/nodes?limit=1&q=${encodeURIComponent(text)}`, {
      headers: { Authorization: `Bearer ${await this.token("admin")}` },
    });
    const { items } = (await answer.json()) as { items: { id: string }[] };
    if (!items[0]) throw new Error(`no node is named ${text}`);
    return items[0].id;
  }

  /** A new token of a role. */
  async newToken(name: string, role: "viewer" | "planner" | "admin"): Promise<string> {
    const made = await this.post("/api/v1/tokens", await this.token("admin"), JSON.stringify({ name, role }));
    return String(made.token);
  }

  /** Waits for the line with its address. Fails with what the server said when it ends or takes too long. */
  private static whenReady(child: ChildProcess): Promise<string> {
    const said: string[] = [];
    return new Promise((resolve, reject) => {
      const fail = (why: string) => {
        child.kill("SIGKILL");
        reject(new Error(`${why}\n${said.slice(-20).join("\n")}`));
      };
      const limit = setTimeout(() => fail("the server did not start in time"), START_LIMIT_MS);
      child.once("exit", (code) => fail(`the server ended with status ${code}`));
      for (const stream of [child.stdout, child.stderr]) {
        if (!stream) continue;
        createInterface({ input: stream }).on("line", (line) => {
          said.push(line);
          const url = /^ready (\S+)/.exec(line)?.[1];
          if (!url) return;
          clearTimeout(limit);
          child.removeAllListeners("exit");
          resolve(url);
        });
      }
    });
  }

  /** A new login link; it works once. */
  async loginLink(): Promise<string> {
    const link = await this.post("/api/v1/login-links", await this.token("admin"), "");
    return `${this.url}/login#token=${String(link.token)}`;
  }

  /** The cookie of a browser that has signed in as an administrator: the same session for all tests that do not end it. */
  async sessionCookie(): Promise<{ name: string; value: string; url: string }> {
    // On a slow machine the tests take longer than the service takes a login for a new one.
    if (this.session && Date.now() - this.signedInAt < 10 * 60_000) return this.session;
    const link = await this.post("/api/v1/login-links", await this.token("admin"), "");
    const answer = await fetch(`${this.url}/api/v1/session`, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ token: link.token }),
    });
    const [, name, value] = /^([^=]+)=([^;]+)/.exec(answer.headers.get("Set-Cookie") ?? "") ?? [];
    if (!name || !value) throw new Error(`signing in answered ${answer.status} without a cookie`);
    this.signedInAt = Date.now();
    this.session = { name, value, url: this.url };
    return this.session;
  }

  async token(name: "admin" | "agent"): Promise<string> {
    return (await readFile(join(this.folder, `${name}.token`), "utf8")).trim();
  }

  /**
   * A real agent on this machine: it observes, runs a quick benchmark, and sends its report. It waits for tests of other
   * suites that have the machine's huge page pools, unless told otherwise: a benchmark would take their pages, and a
   * sample would show them.
   */
  async runAgent(
    measure: "quick" | "none" = "quick",
    pools: "wait for pools" | "beside others" = "wait for pools",
  ) {
    const agent = [
      ...[command("hugeplan-agent"), "once"],
      ...["--server", this.url, "--token-file", join(this.folder, "agent.token")],
      ...["--spool-dir", join(this.folder, "agent"), "--measure", measure],
      ...(measure === "none" ? [] : ["--tlbbench", join(REPOSITORY, "agent/build/tlbbench")]),
    ];
    const alone = pools === "beside others" ? [] : [join(REPOSITORY, "deploy/suites/with_pools.py")];
    await run(python(), [...alone, ...agent], { timeout: 180_000 });
  }

  /** A report as it was recorded. */
  async recorded(name: string): Promise<RecordedReport> {
    return JSON.parse(await readFile(new URL(`./recorded/${name}.json`, import.meta.url), "utf8"));
  }

  /** Sends a recorded report (with some fields changed), as an agent would, and returns the node's id. */
  async sendReport(name: string, change: Record<string, unknown> = {}): Promise<string> {
    const report = { ...(await this.recorded(name)), ...change };
    const agent = await this.post(
      "/api/v1/tokens",
      await this.token("admin"),
      JSON.stringify({ name, role: "agent", machine_id: report.machine_id }),
    );
    const receipt = await this.post("/api/v1/reports", String(agent.token), JSON.stringify(report));
    return String(receipt.node_id);
  }

  /** A saved scenario with one PostgreSQL, and its id. */
  async saveScenario(
    name: string,
    sharedBuffers: string,
    database: Record<string, unknown> = {},
  ): Promise<string> {
    const scenario = {
      schema_version: 1,
      node: { name: "any", arch: "x86_64", memory: "128GiB" },
      databases: [{ name, engine: "postgresql", settings: { shared_buffers: sharedBuffers }, ...database }],
    };
    const made = await this.post(
      "/api/v1/scenarios",
      await this.token("admin"),
      JSON.stringify({ name, scenario }),
    );
    return String(made.id);
  }

  /** Keeps a plan of one PostgreSQL on a node. */
  async keepPlan(nodeId: string): Promise<void> {
    const databases = [{ name: "main", engine: "postgresql", settings: { shared_buffers: "8GB" } }];
    const body = JSON.stringify({ node_id: nodeId, scenario: { databases } });
    await this.post("/api/v1/plans", await this.token("admin"), body);
  }

  /** Starts a plan of all nodes as they run, and returns the address of its page. */
  async planFleet(): Promise<string> {
    const body = JSON.stringify({ name: "Each node as it runs", selector: {} });
    const { id } = await this.post("/api/v1/fleet/plan", await this.token("admin"), body);
    return `${this.url}/fleet-plans/${String(id)}`;
  }

  /** Forgets a node, so that other tests find the fleet as it was. */
  async deleteNode(id: string): Promise<void> {
    const answer = await fetch(`${this.url}/api/v1/nodes/${id}`, {
      method: "DELETE",
      headers: { Authorization: `Bearer ${await this.token("admin")}` },
    });
    if (!answer.ok) throw new Error(`deleting a node answered ${answer.status}: ${await answer.text()}`);
  }

  /** A fleet plan of all nodes, and its id. */
  async startFleetPlan(name: string): Promise<string> {
    const scenario = {
      schema_version: 1,
      databases: [{ name, engine: "postgresql", settings: { shared_buffers: "8GB" } }],
    };
    const body = JSON.stringify({ name, selector: {}, scenario });
    return String((await this.post("/api/v1/fleet/plan", await this.token("admin"), body)).id);
  }

  private async post(path: string, token: string, body: string): Promise<Record<string, unknown>> {
    const answer = await fetch(this.url + path, {
      method: "POST",
      headers: { Authorization: `Bearer ${token}`, "Content-Type": "application/json" },
      body,
    });
    if (!answer.ok) throw new Error(`${path} answered ${answer.status}: ${await answer.text()}`);
    return (await answer.json()) as Record<string, unknown>;
  }

  async stop(): Promise<void> {
    await this.goAway();
    await rm(this.folder, { recursive: true, force: true });
  }
}
