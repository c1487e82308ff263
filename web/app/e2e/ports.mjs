// Reserves ports for one story. A port that was merely found free may be taken before its use: by another story, or by a browser for a
// connection of its own. So ports come in blocks below those that the system gives out by itself, and a story holds the lock
// of its block: a socket on a loopback address that is used for nothing else.

import dgram from "node:dgram";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import net from "node:net";

/** Where the server listens, and where the proxy in front of it does: the same port of another loopback address. */
export const SERVER_IP = "127.0.0.1";
export const PROXY_IP = "127.0.0.2";
const LOCK_IP = "127.0.0.9";

/** So many sessions a server here has place for. */
export const HOSTS = 4;

/** For pages, UDP, QUIC and each host; a round number. */
const BLOCK = 8;
const FIRST = 12_000;

/** A block of ports, each free for TCP and UDP, until `release` is called. */
export async function ownPorts() {
  const end = await firstOfTheSystem();
  const blocks = Math.floor((end - FIRST) / BLOCK);
  const start = Math.floor(Math.random() * blocks);
  for (let tries = 0; tries < blocks; tries++) {
    const first = FIRST + ((start + tries) % blocks) * BLOCK;
    const lock = await listen(first, LOCK_IP);
    if (!lock) continue;
    const ports = Array.from({ length: BLOCK }, (_, at) => first + at);
    if (await areFree(ports)) return { ...named(ports), release: () => closed(lock) };
    await closed(lock);
  }
  throw new Error(`no block of ${BLOCK} ports between ${FIRST} and ${end} is free`);
}

function named([web, udp, quic, ...rest]) {
  return { web, udp, quic, hosts: rest.slice(0, HOSTS) };
}

/** From there on any connection may get any port. */
async function firstOfTheSystem() {
  const range = await readFile("/proc/sys/net/ipv4/ip_local_port_range", "utf8").catch(() => "32768");
  return Math.max(FIRST + 16 * BLOCK, Number(range.split(/\s/)[0]));
}

/** Whether no other program uses one of them. */
async function areFree(ports) {
  for (const ip of [SERVER_IP, PROXY_IP]) {
    const sockets = await Promise.all(ports.flatMap((port) => [listen(port, ip), bind(port, ip)]));
    await Promise.all(sockets.map((socket) => socket && closed(socket)));
    if (sockets.some((socket) => !socket)) return false;
  }
  return true;
}

function listen(port, ip) {
  const server = net.createServer();
  return opened(server, () => server.listen({ port, host: ip, exclusive: true }));
}

function bind(port, ip) {
  const socket = dgram.createSocket("udp4");
  return opened(socket, () => socket.bind({ port, address: ip, exclusive: true }));
}

/** The socket; none if its port is taken. */
async function opened(socket, open) {
  const listening = once(socket, "listening");
  open();
  try {
    await listening;
    return socket;
  } catch (error) {
    if (error.code !== "EADDRINUSE") throw error;
    return null;
  }
}

function closed(socket) {
  return new Promise((done) => socket.close(done));
}
