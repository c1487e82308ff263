// WebTransport: datagrams, and one two-way stream for each of four lanes, all opened by us at once. Each begins with
// the lane's number; lane 0 then has length (u16) and hello from us, length (u16) and answer from the server.

import { MAX_WAITING_BYTES, type Carrier, type CarrierEvents } from "./carrier";
import type { Doors } from "./messages";

const LANES = 4;

/** After our close, the other side has this long to read the last bytes. */
const LAST_WORDS_MS = 2_000;

/** A datagram that was not sent by then is outdated. */
const STALE_DATAGRAM_MS = 250;

type Bytes = Uint8Array<ArrayBuffer>;

export function openWebTransport(doors: Doors, hello: Bytes, events: CarrierEvents): Carrier {
  const carrier = new WebTransportCarrier(events);
  void carrier.run(doors, hello);
  return carrier;
}

class WebTransportCarrier implements Carrier {
  private transport: WebTransport | undefined;
  private lanes: Lane[] = [];
  private datagrams: WritableStreamDefaultWriter | undefined;
  private closed = false;
  private readers: Promise<void>[] = [];

  constructor(private readonly events: CarrierEvents) {}

  async run(doors: Doors, hello: Bytes): Promise<void> {
    try {
      const transport = dial(doors);
      this.transport = transport;
      // Both may reject, and neither may go unheard.
      transport.closed.then(
        () => this.end("the connection was closed"),
        (error: unknown) => this.end(reason(error)),
      );
      await transport.ready;
      this.datagrams = datagramWriter(transport);
      this.lanes = await Promise.all(Array.from({ length: LANES }, (_, lane) => openLane(transport, lane, hello)));
      const rest = await this.readAnswer();
      this.readers = this.lanes.map((lane, at) => this.readLane(at, lane.reader, at === 0 ? rest : undefined));
      await this.readDatagrams(transport);
    } catch (error) {
      this.end(reason(error));
    }
  }

  datagram(bytes: Bytes): void {
    // A failed datagram is not reported here: the failure also ends the WebTransport session, which reports it.
    this.datagrams?.write(bytes).catch(() => {});
  }

  stream(lane: number, bytes: Bytes): void {
    const to = this.lanes[lane];
    if (!to) return;
    if (to.waiting_bytes > MAX_WAITING_BYTES) return this.end("the connection does not keep up");
    to.waiting_bytes += bytes.length;
    to.writer.write(bytes).then(
      () => (to.waiting_bytes -= bytes.length),
      (error: unknown) => this.end(reason(error)),
    );
  }

  close(): void {
    if (this.closed) return;
    this.closed = true;
    void this.part();
  }

  /** Finishes our lanes, then waits for the other side to finish its own: only then has it read ours. */
  private async part(): Promise<void> {
    const finished = Promise.allSettled([...this.lanes.map(({ writer }) => writer.close()), ...this.readers]);
    await Promise.race([finished, new Promise((done) => setTimeout(done, LAST_WORDS_MS))]);
    this.hangUp();
  }

  private end(why: string): void {
    if (this.closed) return;
    this.closed = true;
    this.hangUp();
    this.events.gone(why);
  }

  private hangUp(): void {
    try {
      this.transport?.close();
    } catch {
      // It had ended already.
    }
  }

  /** Hands the answer over and returns what came after it. */
  private async readAnswer(): Promise<Uint8Array> {
    const lane = this.lanes[0];
    let bytes = new Uint8Array(0);
    for (;;) {
      const length = bytes.length < 2 ? undefined : (bytes[0] ?? 0) | ((bytes[1] ?? 0) << 8);
      if (length !== undefined && bytes.length >= 2 + length) {
        if (!this.closed) this.events.answer(bytes.slice(2, 2 + length));
        return bytes.slice(2 + length);
      }
      const { value, done } = (await lane?.reader.read()) ?? { value: undefined, done: true };
      if (done) throw new Error("the server closed the connection before it had answered");
      bytes = joined(bytes, value);
    }
  }

  private async readLane(lane: number, reader: Lane["reader"], first?: Uint8Array): Promise<void> {
    if (first?.length && !this.closed) this.events.stream(lane, first);
    try {
      for (;;) {
        const { value, done } = await reader.read();
        if (done) return;
        if (!this.closed) this.events.stream(lane, value);
      }
    } catch (error) {
      this.end(reason(error));
    }
  }

  private async readDatagrams(transport: WebTransport): Promise<void> {
    const reader = transport.datagrams.readable.getReader();
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      if (!this.closed) this.events.datagram(value as Uint8Array);
    }
  }
}

interface Lane {
  writer: WritableStreamDefaultWriter<Bytes>;
  reader: ReadableStreamDefaultReader<Uint8Array>;
  waiting_bytes: number;
}

function dial(doors: Doors): WebTransport {
  if (!doors.webtransport) throw new Error("the server offers no WebTransport");
  const { port, cert } = doors.webtransport;
  const options: WebTransportOptions = { requireUnreliable: true, congestionControl: "low-latency" };
  if (cert) options.serverCertificateHashes = [{ algorithm: "sha-256", value: fromHex(cert) }];
  return new WebTransport(`https://${hostFor(doors.hostname ?? location.hostname)}:${port}/`, options);
}

/** Browsers try `localhost` as ::1 alone where no connection tells them otherwise, and servers listen on 127.0.0.1. */
function hostFor(page: string): string {
  return page === "localhost" ? "127.0.0.1" : page;
}

async function openLane(transport: WebTransport, lane: number, hello: Bytes): Promise<Lane> {
  const stream = await transport.createBidirectionalStream();
  const writer = stream.writable.getWriter() as WritableStreamDefaultWriter<Bytes>;
  // A stream exists for the other side when something has been written to it.
  const first = lane === 0 ? Uint8Array.of(0, hello.length & 0xff, hello.length >> 8, ...hello) : Uint8Array.of(lane);
  await writer.write(first);
  return { writer, reader: stream.readable.getReader(), waiting_bytes: 0 };
}

function datagramWriter(transport: WebTransport): WritableStreamDefaultWriter {
  const datagrams = transport.datagrams as WebTransportDatagramDuplexStream & {
    createWritable?: () => WritableStream;
  };
  datagrams.outgoingMaxAge = STALE_DATAGRAM_MS;
  // Browsers are migrating from one name to the other.
  const writable = datagrams.writable ?? datagrams.createWritable?.();
  const writer = writable.getWriter();
  writer.closed.catch(() => {});
  return writer;
}

function joined(one: Uint8Array, other: Uint8Array): Uint8Array<ArrayBuffer> {
  const both = new Uint8Array(one.length + other.length);
  both.set(one);
  both.set(other, one.length);
  return both;
}

function fromHex(hex: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(hex.match(/../g) ?? [], (pair) => parseInt(pair, 16));
}

function reason(error: unknown): string {
  return error instanceof Error && error.message ? error.message : "the connection failed";
}
