// The worker of a page: it owns the wasm module, the client and its connections, so that a busy or hidden page does
// not hold up the session. Before it joins it also answers questions that only the module can answer.

import init, { Client, Demo, builds, key_from_passphrase, page_proof, save_info } from "../wasm/sametick_web.js";
import module_url from "../wasm/sametick_web_bg.wasm?url";
import { randomHex } from "../hex";
import type { Doors, Question, ToWorker } from "./messages";
import { Exhibition } from "./exhibition";
import { Keeper } from "./keeper";
import { nowUs, Pump, type Post } from "./pump";

/** What is used of a worker's global scope; the page's types do not have it. */
interface Scope {
  postMessage(message: unknown, transfer: Transferable[]): void;
  onmessage: ((event: MessageEvent<ToWorker>) => void) | null;
}

const scope = self as unknown as Scope;
const post: Post = (message, transfer = []) => scope.postMessage(message, transfer);

const loaded = init({ module_or_path: module_url });
// Each message waits for the module, so they stay in order. A module that cannot be loaded is reported once.
let order: Promise<unknown> = loaded.catch(crashed);
let pump: Pump | undefined;
let keeper: Keeper | undefined;
/** Where the host of a session is, as the page heard last. */
let told: Doors | undefined;
const exhibitions = new Map<string, Exhibition>();

scope.onmessage = ({ data }: MessageEvent<ToWorker>) => {
  order = order.then(() => handle(data)).catch(crashed);
};

function handle(message: ToWorker): void {
  switch (message.kind) {
    case "ask":
      try {
        return post({ kind: "answer", id: message.id, value: answer(message.question) });
      } catch (error) {
        return post({ kind: "failed", id: message.id, why: text(error) });
      }
    case "demo":
      return exhibit(message.game, message.players);
    case "join":
      for (const game of exhibitions.keys()) exhibit(game, null);
      pump = join(message);
      return pump.tell((client, now_us) => client.timeout(now_us));
    case "doors":
      told = message.doors;
      return;
    case "come-as":
      return pump?.tell((client) => client.come_as(message.token));
    case "character":
      return pump?.tell((client) => client.choose_character(message.name));
    case "controls":
      return pump?.tell((client) => client.controls(message.held, message.x, message.y, message.tool));
    case "press":
      return pump?.tell((client) => client.press());
    case "netem":
      return pump?.tell((client) => client.netem(message.profile));
    case "drop":
      return pump?.tell((client, now_us) => client.drop(now_us, message.for_ms));
    case "ghost":
      if (pump) pump.showsGhost = message.on;
      return;
    case "keep":
      return void keeper?.keep().then(
        (info) => post({ kind: "kept", info, why: info ? "" : "there is nothing to keep yet" }),
        (error: unknown) => post({ kind: "kept", info: null, why: text(error) }),
      );
    case "leave":
      keeper?.end();
      return pump?.tell((client, now_us) => client.leave(now_us));
  }
}

function exhibit(game: string, players: number | null): void {
  exhibitions.get(game)?.stop();
  exhibitions.delete(game);
  if (players === null) return;
  exhibitions.set(game, new Exhibition(game, new Demo(game, players, Date.now()), post));
}

function answer(question: Question): string {
  switch (question.what) {
    case "builds":
      return builds();
    case "messages":
      return pump?.messages() ?? "";
    case "key":
      return key_from_passphrase(question.passphrase);
    case "proof":
      return page_proof(question.key, question.unix_minute);
    case "save":
      return save_info(question.bytes);
  }
}

function join({ options, doors, token, claim, bring }: Extract<ToWorker, { kind: "join" }>): Pump {
  const { pass, ...rest } = options;
  const client = new Client(
    JSON.stringify({ ...rest, ...(pass && { pass }), token, claim, unix_ms: Date.now(), now_us: nowUs(), random: randomHex(32) }),
  );
  if (bring) client.bring(bring);
  // The host of a session that people gathered in keeps it.
  if (options.mode === "lockstep" && !pass) keeper = new Keeper(() => client.copy(Date.now()), save_info);
  if (pass) told = doors;
  // The first dial uses the addresses that the page has just read; after that the server may have changed.
  let known: Doors | undefined = doors;
  const current = async (): Promise<Doors> => {
    if (told) return told;
    const first = known;
    known = undefined;
    return first ?? (await askServer());
  };
  return new Pump(client, current, ended, crashed);
}

/** What the pump says; with the end of the session its copy is kept once more. */
const ended: Post = (message, transfer) => {
  if (message.kind === "done") keeper?.end();
  post(message, transfer);
};

async function askServer(): Promise<Doors> {
  const response = await fetch("/api/server", { cache: "no-store", signal: AbortSignal.timeout(5_000) });
  if (!response.ok) throw new Error(`the server answered ${response.status}`);
  const answer = (await response.json()) as Doors;
  post({ kind: "server", answer });
  return answer;
}

function crashed(error: unknown): void {
  post({ kind: "crash", why: text(error) });
}

function text(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
