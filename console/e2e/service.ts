import { type ChildProcess, execFile, execFileSync, spawn } from "node:child_process";
import { mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);

/** The program under test. */
export const VSL = realpathSync(process.env.VSL ?? "../target/debug/vsl");

/** A TCP port of this machine that nobody listens on just now. */
export function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const address = server.address();
      const port = typeof address === "object" && address !== null ? address.port : 0;
      server.close(() => resolve(port));
    });
  });
}

/** A service of its own, with its own directories, that ends with the test. */
export class Service {
  private process: ChildProcess | null = null;
  private log = "";

  private constructor(
    readonly directory: string,
    readonly port: number,
  ) {}

  static async start(): Promise<Service> {
    const service = new Service(mkdtempSync(join(tmpdir(), "console-")), await freePort());
    await service.up();
    return service;
  }

  get env(): NodeJS.ProcessEnv {
    return {
      ...process.env,
      OPENVSL_RUNTIME_DIR: this.directory,
      OPENVSL_STATE_DIR: join(this.directory, "state"),
    };
  }

  get address(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  file(name: string): string {
    return join(this.directory, name);
  }

  /** What the program prints. */
  vsl(...words: string[]): string {
    return execFileSync(VSL, words, {
      env: this.env,
      encoding: "utf8",
      stdio: ["ignore", "pipe", "pipe"],
    }).trim();
  }

  /** Makes a device and attaches it; answers its NBD address. */
  device(name: string, ...create: string[]): string {
    const size = create.some((word) => word === "--emulate" || word === "--profile")
      ? []
      : ["--size", "256MiB"];
    this.vsl("create", this.file(`${name}.vsl`), ...size, ...create);
    this.vsl("attach", this.file(`${name}.vsl`));
    return this.vsl("status", name, "--field", "uri");
  }

  /** Puts a cache in front of a file, and reads some of it twice; its address. */
  async cachedVolume(name: string): Promise<string> {
    this.device("fast", "--address-space", "1TiB");
    writeFileSync(this.file(`${name}.img`), Buffer.alloc(64 << 20, 7));
    this.vsl(
      "cache",
      "create",
      name,
      "--cache",
      "fast",
      "--behind",
      this.file(`${name}.img`),
      "--mode",
      "write-back",
    );
    const uri = this.vsl("status", name, "--field", "uri");
    await fio(
      uri,
      "--rw=randrw",
      "--rwmixread=80",
      "--bs=16k",
      "--iodepth=4",
      "--size=64m",
      "--io_size=96m",
      "--norandommap",
    );
    return uri;
  }

  /** The console's address, with what signs in. */
  console(): string {
    const address = /https?:\/\/\S+/.exec(this.vsl("console"))?.[0];
    if (address === undefined) throw new Error("`vsl console` prints no address");
    return address;
  }

  async up(): Promise<void> {
    const child = spawn(VSL, ["up", "--foreground", "--listen", `127.0.0.1:${this.port}`], {
      env: this.env,
      stdio: ["ignore", "ignore", "pipe"],
    });
    this.process = child;
    child.stderr?.on("data", (part: Buffer) => {
      this.log += part.toString();
    });
    for (let tries = 0; tries < 300; tries += 1) {
      if (child.exitCode !== null) break;
      try {
        await fetch(`${this.address}/`);
        return;
      } catch {
        await new Promise((resolve) => setTimeout(resolve, 100));
      }
    }
    throw new Error(`the service does not come up:\n${this.log}`);
  }

  /** Ends the service as a crash would. */
  async kill(): Promise<void> {
    const child = this.process;
    this.process = null;
    if (child === null || child.exitCode !== null) return;
    const ended = new Promise((resolve) => child.once("exit", resolve));
    child.kill("SIGKILL");
    await ended;
  }

  async end(): Promise<void> {
    await this.kill();
    rmSync(this.directory, { recursive: true, force: true });
  }
}

interface FioResult {
  jobs: { read: { iops: number; bw_bytes: number }; write: { iops: number; bw_bytes: number } }[];
}

/** Runs fio on an NBD address and gives what it measured. */
export async function fio(uri: string, ...options: string[]): Promise<{ iops: number; bandwidth: number }> {
  const words = ["--name=e2e", "--ioengine=nbd", `--uri=${uri}`, "--output-format=json", ...options];
  const { stdout } = await run("fio", words, { maxBuffer: 16 << 20 });
  const result = JSON.parse(stdout.slice(stdout.indexOf("{"))) as FioResult;
  const total = (pick: (job: FioResult["jobs"][number]) => number) =>
    result.jobs.reduce((sum, job) => sum + pick(job), 0);
  return {
    iops: total((job) => job.read.iops + job.write.iops),
    bandwidth: total((job) => job.read.bw_bytes + job.write.bw_bytes),
  };
}
