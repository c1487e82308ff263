// A server of its own for a story: the real program, on ports of its own, with a folder that is gone afterwards.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { ownPorts, PROXY_IP, SERVER_IP } from "./ports.mjs";
import { until } from "./until.mjs";

const PROGRAM = process.env.SAMETICK ?? "sametick";

/** Servers that run: none outlives us, whatever ends us. */
const running = new Set();
process.on("exit", () => running.forEach((child) => child.kill("SIGKILL")));

export class Server {
  /** Its whole output, for debugging. */
  said = "";
  #child;

  constructor(folder, ports, secret) {
    this.folder = folder;
    this.ports = ports;
    this.secret = secret;
  }

  /** `secret`: the passphrase, if there should be one. */
  static async start({ secret } = {}) {
    const folder = await mkdtemp(path.join(os.tmpdir(), "sametick-e2e-"));
    const server = new Server(folder, await ownPorts(), secret);
    try {
      if (secret) await writeFile(server.#secretFile(), `${secret}\n`);
      await server.run();
      return server;
    } catch (error) {
      await server.close();
      throw error;
    }
  }

  get address() {
    return `http://${SERVER_IP}:${this.ports.web}`;
  }

  /** The same server, through the proxy. */
  get proxied() {
    return `http://${PROXY_IP}:${this.ports.web}`;
  }

  get udp() {
    return `udp://${SERVER_IP}:${this.ports.udp}`;
  }

  /** The QUIC address for native players, with the fingerprint of the certificate. */
  async quic() {
    const { native } = await (await fetch(`${this.address}/api/server`)).json();
    return native.find((address) => address.startsWith("quic:"));
  }

  async run() {
    const { web, udp, quic } = this.ports;
    const words = ["up", "--listen", `${SERVER_IP}:${web}`, "--udp", udp, "--quic", quic, "--data", this.folder];
    words.push("--host-ports", `${this.ports.hosts[0]}-${this.ports.hosts.at(-1)}`, "--spare-hosts", 1);
    if (this.secret) words.push("--secret-file", this.#secretFile());
    this.#child = spawn(PROGRAM, words.map(String), { stdio: ["ignore", "pipe", "pipe"] });
    running.add(this.#child);
    for (const stream of [this.#child.stdout, this.#child.stderr]) stream.on("data", (text) => (this.said += text));
    await until("the server answers", async () => {
      if (this.#child.exitCode !== null) throw new Error(`the server ended by itself:\n${this.said}`);
      return (await fetch(`${this.address}/api/health`).catch(() => null))?.ok;
    });
  }

  /** Kills it, as when the machine fails. */
  async kill() {
    if (!this.#child || this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const ended = once(this.#child, "exit");
    this.#child.kill("SIGKILL");
    await ended;
    running.delete(this.#child);
  }

  /** The processes in which its sessions run. They outlive it when it is killed. */
  async hosts() {
    const found = [];
    for (const pid of (await readdir("/proc")).filter((name) => /^\d+$/.test(name))) {
      const words = (await readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "")).split("\0");
      const is_ours = words[1] === "host" && words.some((word) => word.startsWith(this.folder));
      if (is_ours) found.push({ pid: Number(pid), port: Number(words[words.indexOf("--listen") + 1]?.split(":").at(-1)) });
    }
    return found;
  }

  /** Ends the host at a port: by a kill, or by a signal to stop. */
  async endHost(port, signal = "SIGKILL") {
    const host = (await this.hosts()).find((host) => host.port === port);
    if (!host) throw new Error(`no host is at port ${port}`);
    end(host.pid, signal);
  }

  async close() {
    await this.kill();
    for (const { pid } of await this.hosts()) end(pid, "SIGKILL");
    await this.ports.release();
    await rm(this.folder, { recursive: true, force: true });
  }

  /** Runs another command of the program against this server; resolves with what it printed. */
  async command(...words) {
    const secret = this.secret ? ["--secret-file", this.#secretFile()] : [];
    const child = spawn(PROGRAM, [...words, ...secret].map(String), { stdio: ["ignore", "pipe", "pipe"] });
    let printed = "";
    let complaint = "";
    child.stdout.on("data", (text) => (printed += text));
    child.stderr.on("data", (text) => (complaint += text));
    const [code] = await once(child, "close");
    if (code !== 0) throw new Error(`sametick ${words.join(" ")} ended with ${code}:\n${complaint}`);
    return printed;
  }

  #secretFile() {
    return path.join(this.folder, "secret.txt");
  }
}

/** Sends a signal; a process that has already ended is no error. */
function end(pid, signal) {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if (error.code !== "ESRCH") throw error;
  }
}
