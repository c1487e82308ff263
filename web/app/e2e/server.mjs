// A server of its own for a story: the real program, on free ports, with a folder that is gone afterwards.

import { spawn } from "node:child_process";
import dgram from "node:dgram";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import net from "node:net";
import os from "node:os";
import path from "node:path";
import { until } from "./until.mjs";

const PROGRAM = process.env.SAMETICK ?? "sametick";

/** Where the server listens, and where the proxy in front of it does: the same port of another loopback address. */
export const SERVER_IP = "127.0.0.1";
export const PROXY_IP = "127.0.0.2";

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
    const server = new Server(folder, await freePorts(), secret);
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

  async close() {
    await this.kill();
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

/** Three ports that nobody has, each free for TCP and for UDP. */
async function freePorts() {
  const held = [];
  try {
    for (let count = 0; count < 3; count++) held.push(await holdPort());
    const [web, udp, quic] = held.map(({ port }) => port);
    return { web, udp, quic };
  } finally {
    await Promise.all(held.map(({ release }) => release()));
  }
}

async function holdPort() {
  const tcp = net.createServer().listen(0, SERVER_IP);
  await once(tcp, "listening");
  const { port } = tcp.address();
  const udp = dgram.createSocket("udp4");
  udp.bind(port, SERVER_IP);
  await once(udp, "listening");
  const closed = (what) => new Promise((done) => what.close(done));
  return { port, release: () => Promise.all([closed(tcp), closed(udp)]) };
}
