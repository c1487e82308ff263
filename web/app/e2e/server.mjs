// A server of its own for a story: the real program, on free ports, with a folder that is gone afterwards.

import { spawn } from "node:child_process";
import dgram from "node:dgram";
import { once } from "node:events";
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import net from "node:net";
import os from "node:os";
import path from "node:path";
import { until } from "./until.mjs";

const PROGRAM = process.env.SAMETICK ?? "sametick";

/** Where the server listens, and where the proxy in front of it does: the same port of another loopback address. */
export const SERVER_IP = "127.0.0.1";
export const PROXY_IP = "127.0.0.2";

/** So many sessions a server here has place for. */
const HOSTS = 4;

/** Where a row of free ports is looked for: below those that systems give to anybody. */
const ROWS = { from: 20_000, to: 32_000 };

/** Servers that run: none outlives us, whatever ends us. */
const running = new Set();
process.on("exit", () => running.forEach((child) => child.kill("SIGKILL")));

export class Server {
  /** Everything it said, for whoever wonders what happened. */
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
    const server = new Server(folder, { ...(await freePorts()), hosts: await freeRow(HOSTS) }, secret);
    if (secret) await writeFile(server.#secretFile(), `${secret}\n`);
    await server.run();
    return server;
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

  /** Where native players come in by QUIC, with the fingerprint of the certificate. */
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

  /** Without a word to anybody, as when the machine fails. */
  async kill() {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
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

  /** Ends the host at a port: without a word to anybody, or by asking it to. */
  async endHost(port, signal = "SIGKILL") {
    const host = (await this.hosts()).find((host) => host.port === port);
    if (!host) throw new Error(`no host is at port ${port}`);
    end(host.pid, signal);
  }

  async close() {
    await this.kill();
    for (const { pid } of await this.hosts()) end(pid, "SIGKILL");
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

/** One that has just ended by itself has ended. */
function end(pid, signal) {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if (error.code !== "ESRCH") throw error;
  }
}

/** Three ports that nobody has, each free for TCP and for UDP. */
async function freePorts() {
  const held = [];
  try {
    for (let count = 0; count < 3; count++) held.push(await holdAnyPort());
    const [web, udp, quic] = held.map(({ port }) => port);
    return { web, udp, quic };
  } finally {
    await Promise.all(held.map(({ release }) => release()));
  }
}

/** So many ports in a row that nobody has. */
async function freeRow(count) {
  for (;;) {
    const first = ROWS.from + Math.floor(Math.random() * (ROWS.to - ROWS.from - count));
    const row = Array.from({ length: count }, (_, at) => first + at);
    const held = await Promise.allSettled(row.map((port) => holdPort(port)));
    await Promise.all(held.map(({ value }) => value?.release()));
    if (held.every(({ status }) => status === "fulfilled")) return row;
  }
}

/** A port that is free of both kinds: where the system gives one for TCP, a browser may have that of UDP. */
async function holdAnyPort() {
  for (;;) {
    try {
      return await holdPort();
    } catch (error) {
      if (error.code !== "EADDRINUSE") throw error;
    }
  }
}

async function holdPort(wanted = 0) {
  const tcp = net.createServer().listen(wanted, SERVER_IP);
  await once(tcp, "listening");
  const { port } = tcp.address();
  const udp = dgram.createSocket("udp4");
  const closed = (what) => new Promise((done) => what.close(done));
  const release = () => Promise.all([closed(tcp), closed(udp)]);
  try {
    udp.bind(port, SERVER_IP);
    await once(udp, "listening");
  } catch (error) {
    await release();
    throw error;
  }
  return { port, release };
}
