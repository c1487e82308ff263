import { expect, test } from "vitest";
import { endingOnce } from "./carrier";

test("a carrier ends once, and reports nothing after its end", () => {
  const heard: string[] = [];
  const events = endingOnce({
    answer: () => heard.push("answer"),
    datagram: () => heard.push("datagram"),
    datagrams: (carried) => heard.push(`datagrams ${carried}`),
    stream: (lane) => heard.push(`stream ${lane}`),
    gone: (why) => heard.push(`gone: ${why}`),
  });
  const bytes = new Uint8Array(1);
  events.answer(bytes);
  events.datagram(bytes);
  events.datagrams(true);
  events.stream(2, bytes);
  events.gone("the connection was closed");
  events.gone("again");
  events.answer(bytes);
  events.datagram(bytes);
  events.datagrams(false);
  events.stream(0, bytes);
  expect(heard).toEqual(["answer", "datagram", "datagrams true", "stream 2", "gone: the connection was closed"]);
});
