import { expect, test } from "vitest";
import { Cut, Line } from "./line";
import { TestWorld } from "./testworld";

function opened() {
  const world = new TestWorld();
  const heard: string[] = [];
  const line = new Line("session", "ws://host", world, {
    opened: () => heard.push("opened"),
    told: (envelope) => heard.push(JSON.stringify(envelope.event)),
    gone: (was_open) => heard.push(`gone ${was_open}`),
    measured: (rtt_ms) => heard.push(`rtt ${rtt_ms}`),
  });
  return { world, heard, line, socket: world.newest };
}

test("answers are matched to requests in any order", async () => {
  const { line, socket } = opened();
  socket.onopen?.();
  const [first, second] = [line.ask("take", { seat: 0 }), line.ask("ready", { ready: true })];
  const [one, two] = socket.commands();
  expect(one).toMatchObject({ v: 2, feature: "session", action: "take", payload: { seat: 0 } });
  socket.tell({ kind: "error", code: "no_seat", seq: two?.seq });
  socket.tell({ kind: "ack", seq: one?.seq });
  expect(await first).toMatchObject({ kind: "ack" });
  expect(await second).toMatchObject({ code: "no_seat" });
});

test("it pings every two seconds, and measures", () => {
  const { world, heard, socket } = opened();
  socket.onopen?.();
  expect(socket.pings()).toBe(1);
  for (let s = 0; s < 4; s++) {
    world.pass(30);
    socket.pong();
    world.pass(970);
  }
  expect(socket.pings()).toBe(3);
  expect(heard).toContain("rtt 30");
});

test("five seconds of silence end the line and fail its requests", async () => {
  const { world, heard, line, socket } = opened();
  socket.onopen?.();
  const asked = line.ask("start", {});
  world.pass(4_500);
  expect(heard).toEqual(["opened"]);
  world.pass(1_000);
  expect(heard).toEqual(["opened", "gone true"]);
  await expect(asked).rejects.toThrow(Cut);
  expect(socket.closed).toBe(true);
  world.pass(10_000);
  expect(heard.length).toBe(2);
});

test("a page that slept gives the other side another five seconds", () => {
  const { world, heard, socket } = opened();
  socket.onopen?.();
  world.sleep(60_000);
  world.pass(1_000);
  expect(heard).toEqual(["opened"]);
  world.pass(6_000);
  expect(heard).toEqual(["opened", "gone true"]);
});

test("invalid envelopes are ignored, and messages after closing", () => {
  const { heard, line, socket } = opened();
  socket.onopen?.();
  for (const data of ["x", "{}", "null", '{"v":1,"kind":"event"}', new ArrayBuffer(1)]) socket.onmessage?.({ data });
  line.close();
  socket.tell({ kind: "event", event: { play: null } });
  socket.onclose?.();
  expect(heard).toEqual(["opened"]);
});

test("a connection that never opens is given up", () => {
  const { world, heard } = opened();
  world.pass(6_000);
  expect(heard).toEqual(["gone false"]);
});
