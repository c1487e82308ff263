// A proxy in front of a server that can swallow everything: no connection is closed, nothing is answered, nothing arrives.
// It has the server's port number on another loopback address, for TCP and for UDP, so that a page finds both through it.

import dgram from "node:dgram";
import { once } from "node:events";
import net from "node:net";
import { PROXY_IP, SERVER_IP } from "./ports.mjs";

export class Proxy {
  /** What is swallowed now. */
  #swallows = { tcp: false, udp: false };
  #connections = new Set();
  #paths = new Map();
  #tcp = net.createServer((client) => this.#connect(client));
  #udp = dgram.createSocket("udp4");

  constructor(port) {
    this.port = port;
  }

  static async start(port) {
    const proxy = new Proxy(port);
    proxy.#tcp.listen(port, PROXY_IP);
    await once(proxy.#tcp, "listening");
    proxy.#udp.on("message", (bytes, from) => proxy.#forward(bytes, from));
    proxy.#udp.bind(port, PROXY_IP);
    await once(proxy.#udp, "listening");
    return proxy;
  }

  /** From now on, nothing passes. A TCP connection that has lost bytes is never of use again, and is never closed. */
  cut({ tcp = true, udp = true } = {}) {
    this.#swallows = { tcp, udp };
    if (tcp) for (const connection of this.#connections) connection.lost = true;
  }

  /** The connections that are there and began with a request for this. */
  requestsFor(text) {
    return [...this.#connections].filter(({ client, request }) => !client.destroyed && request.includes(text));
  }

  heal() {
    this.#swallows = { tcp: false, udp: false };
  }

  async close() {
    for (const { client, server } of this.#connections) {
      client.destroy();
      server.destroy();
    }
    for (const path of this.#paths.values()) path.close();
    await Promise.all([this.#tcp, this.#udp].map((socket) => new Promise((done) => socket.close(done))));
  }

  #connect(client) {
    const server = net.connect(this.port, SERVER_IP);
    const connection = { client, server, lost: this.#swallows.tcp, request: "" };
    this.#connections.add(connection);
    client.once("data", (bytes) => (connection.request = bytes.toString("latin1").split("\r\n")[0]));
    const pass = (from, to) => {
      from.on("data", (bytes) => void (connection.lost || to.write(bytes)));
      from.on("end", () => void (connection.lost || to.end()));
      from.on("error", () => void (connection.lost || to.destroy()));
      from.on("close", () => void (connection.lost || to.destroy()));
    };
    pass(client, server);
    pass(server, client);
    client.setNoDelay(true);
    server.setNoDelay(true);
  }

  #forward(bytes, from) {
    if (this.#swallows.udp) return;
    const key = `${from.address}:${from.port}`;
    let path = this.#paths.get(key);
    if (!path) {
      path = dgram.createSocket("udp4");
      path.on("message", (answer) => void (this.#swallows.udp || this.#udp.send(answer, from.port, from.address)));
      // A server that is down answers with an error; a network would not pass it on.
      path.on("error", () => {});
      this.#paths.set(key, path);
    }
    path.send(bytes, this.port, SERVER_IP);
  }
}
