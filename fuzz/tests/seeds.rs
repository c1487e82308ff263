//! Generates the committed seeds of the wire's targets, valid inputs of today's protocol, and compares them, so that
//! fuzzing never starts from an outdated format. After a change of the format, `SEEDS=write cargo test --manifest-path
//! fuzz/Cargo.toml --test seeds` writes them anew.

#![allow(
    clippy::disallowed_methods,
    reason = "a test that writes files asks the environment whether it should"
)]

use std::fs;
use std::path::Path;

use sametick_sim::{BuildId, SchemaHash};
use sametick_wire::Channel;
use sametick_wire::access::AccessKey;
use sametick_wire::bits::BitWriter;
use sametick_wire::block::{Until, put_redundant};
use sametick_wire::frame::{
    put_chunk_head, put_close, put_message, put_ordered_head, put_ping, put_pong, put_prompt,
};
use sametick_wire::hello::{Answer, Hello, Identity, Intent, Refusal, Stamp};
use sametick_wire::packet::{Ack, Head, Newest};
use sametick_wire::quantise::{Quantised, Quaternion};

const NOW_S: u64 = 1_800_000_000;

/// Where a first message's body begins.
const HELLO_HEAD: usize = 62;

type Seed = (&'static str, &'static str, Vec<u8>);

#[test]
fn seeds_are_of_this_protocol() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds");
    let write = std::env::var_os("SEEDS").is_some_and(|what| what == "write");
    let all = [packets(), vec![bits()], hellos(), answers(), connection_ids(), networks(), links(), pairs()];
    for (target, name, bytes) in all.concat() {
        let path = folder.join(target).join(name);
        if write {
            fs::create_dir_all(folder.join(target)).unwrap();
            fs::write(&path, &bytes).unwrap();
        }
        assert!(fs::read(&path).is_ok_and(|read| read == bytes), "{target}/{name} differs");
    }
}

fn put(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = vec![];
    write(&mut out);
    out
}

/// Every kind of frame of a raw UDP datagram, except the close.
fn frames(out: &mut Vec<u8>) {
    put_message(out, Channel::State, b"state");
    put_prompt(out, false);
    put_prompt(out, true);
    put_ordered_head(out, Channel::Chat, 0, 4);
    out.extend_from_slice(b"\x02hi\x00");
    put_ordered_head(out, Channel::Chunks, 300, 1);
    out.push(9);
    put_ping(out, 7);
    put_pong(out, 7);
}

/// All of these, and the last block.
fn frames_and_block(out: &mut Vec<u8>) {
    frames(out);
    put_redundant(out, Until::new(3, 3, true), [&b"a"[..], b"", b"bc"].into_iter());
}

fn packets() -> Vec<Seed> {
    let ack = |missing| Some(Ack { newest: Newest::Long(0x1234), delay: Some(200), missing });
    let short = Some(Ack { newest: Newest::Short(20), delay: Some(9), missing: 1 });
    let bare = put(|out| Head { number: 0x0201, ack: None }.put(out));
    let full = put(|out| {
        Head { number: 5, ack: ack(0b101) }.put(out);
        put_chunk_head(out, Channel::Control, 2);
        out.extend_from_slice(b"\x01x");
        put_close(out, 3, b"bye");
        frames_and_block(out);
    });
    let block = |count: usize, known: bool| {
        put(|out| {
            Head { number: 5, ack: short }.put(out);
            let message = [9; 20];
            let messages = (0..count).map(|at| &message[at % 3 * 8..]);
            put_redundant(out, Until::new(700, count, known), messages);
        })
    };
    let (middle, long) = (block(20, true), block(20, false));
    vec![
        ("packet", "bare", bare),
        ("packet", "all-frames", full),
        ("packet", "middle-block", middle),
        ("packet", "long-block", long),
    ]
}

fn bits() -> Seed {
    let operations =
        [0, 1 | 3 << 3, 2 | 2 << 3, 3 | 6 << 3, 4 | 6 << 3, 5 | 1 << 3, 6 | 7 << 3, 7, 7 | 1 << 3];
    let mut bytes = vec![operations.len() as u8];
    bytes.extend(operations);
    let mut writer = BitWriter::new(&mut bytes);
    writer.bool(true);
    writer.bits(300, 9);
    writer.ranged(-3, -10..=10);
    writer.varint(300, 7);
    writer.varint_signed(-300, 7);
    writer.quantised(12.5, &Quantised::with_step(-512.0, 512.0, 1.0 / 512.0));
    writer.quaternion([0.1, -0.2, 0.3, -0.9], &Quaternion::with_bits(9));
    writer.align();
    writer.bytes(b"bytes");
    writer.finish();
    ("bits", "each", bytes)
}

fn hellos() -> Vec<Seed> {
    let identity = Identity { build: BuildId::from_bytes([1; 16]), schema: SchemaHash::from_bytes([2; 32]) };
    let ping = Hello { identity, intent: Intent::Ping, name: "ada".into(), pass: None };
    let join =
        Hello { intent: Intent::Join { session: "den".into() }, pass: Some(vec![5; 48]), ..ping.clone() };
    let enter = Hello { intent: Intent::Enter { room: "den".into() }, ..ping.clone() };
    let bytes =
        |hello: &Hello| hello.to_bytes(&AccessKey::open(), Stamp { unix_s: NOW_S, nonce: [7; 16] }).unwrap();
    let body = |mode: u8, hello: &Hello| [&[mode], &bytes(hello)[HELLO_HEAD..]].concat();
    vec![
        ("hello", "whole", [&[0], &bytes(&ping)[..]].concat()),
        ("hello", "ping", body(1, &ping)),
        ("hello", "join", body(1, &join)),
        ("hello", "enter", body(1, &enter)),
        ("hello", "version-7", body(7, &ping)),
    ]
}

fn answers() -> Vec<Seed> {
    let build = |n| BuildId::from_bytes([n; 16]);
    vec![
        ("answer", "welcome", Answer::Welcome.to_bytes()),
        ("answer", "version", Answer::Refused(Refusal::Version { server: 1, client: 300 }).to_bytes()),
        (
            "answer",
            "build",
            Answer::Refused(Refusal::Build { server: build(1), client: build(2) }).to_bytes(),
        ),
        ("answer", "other", Answer::Refused(Refusal::Other("full".into())).to_bytes()),
    ]
}

fn connection_ids() -> Vec<Seed> {
    let id = AccessKey::open().connection_id(NOW_S, [1, 2, 3, 4, 5, 6]);
    let made = [&[9], &NOW_S.to_le_bytes()[..], &[7; 16]].concat();
    vec![("connection_id", "whole", [&[0], &id[..]].concat()), ("connection_id", "made", made)]
}

fn networks() -> Vec<Seed> {
    let all = "latency=50ms,jitter=20ms,loss=2.5%,burst=4,dup=1%,reorder=5%,late=10ms..50ms,corrupt=0.1%,rate=125kB,queue=64kB";
    vec![
        ("netem", "all", all.into()),
        ("netem", "rtt", "rtt=1.5s, loss=0.02, rate=1mbit, queue=unlimited".into()),
        ("netem", "perfect", "perfect".into()),
    ]
}

/// A step of the target `link` and its bytes.
fn step(kind: u8, argument: u8, time: u8, part: &[u8]) -> Vec<u8> {
    [&[kind | argument << 3 | time << 5, part.len() as u8], part].concat()
}

fn links() -> Vec<Seed> {
    let timeout = |time: u8| vec![7 | time << 5];
    let packet = put(frames_and_block);
    let on_lane = put(|out| {
        put_chunk_head(out, Channel::Control, 4);
        out.extend_from_slice(b"\x02hi\x00");
        put_ping(out, 7);
    });
    let message = put(|out| put_message(out, Channel::State, b"state"));
    let close = put(|out| put_close(out, 3, b"bye"));
    let conversation = |carrier: u8, first: &[u8]| {
        let mut all = vec![carrier];
        all.extend([step(5, 0, 0, b"control"), step(5, 2, 2, b"bulk"), step(5, 3, 0, b"state")].concat());
        all.extend_from_slice(first);
        all.extend([timeout(4), timeout(5), step(5, 1, 1, b"chat"), timeout(6)].concat());
        all
    };
    let datagrams = [step(1, 0, 2, &packet), step(2, 2, 2, &message), step(1, 0, 0, &close)].concat();
    let both = [step(3, 0, 2, &on_lane), step(1, 0, 0, &message), step(3, 0, 0, &close)].concat();
    let stream =
        [step(3, 0, 2, &on_lane[..3]), step(3, 0, 0, &on_lane[3..]), step(3, 0, 0, &message)].concat();
    vec![
        ("link", "datagrams", conversation(0, &datagrams)),
        ("link", "datagrams-and-streams", conversation(1, &both)),
        ("link", "stream", conversation(2, &stream)),
        ("link", "longest-messages", [&[2], &longest(Channel::Input)[..], &longest(Channel::State)].concat()),
        ("link", "closed-here", [&[0], &step(6, 3, 0, b"enough")[..], &timeout(5), &timeout(5)].concat()),
        ("link", "timed-out", [&[2], &timeout(7)[..]].concat()),
    ]
}

/// The longest message of a channel on a lane, as one step whose length takes two bytes.
fn longest(channel: Channel) -> Vec<u8> {
    let frame = put(|out| put_message(out, channel, &vec![b'x'; channel.max_message()]));
    let [low, high] = (frame.len() as u16).to_le_bytes();
    [&[3, 0xf8 | high, low], &frame[..]].concat()
}

fn pairs() -> Vec<Seed> {
    // Sends on each channel both ways, then lets everything arrive while time passes; the last argument is a length.
    let mut steps = vec![];
    for channel in 0..6u8 {
        steps.extend([5 << 1 | channel << 4, 20, 5 << 1 | 1 | channel << 4, 3]);
    }
    for _ in 0..4 {
        for to in 0..2 {
            steps.extend([to, 1 << 4 | to, 2 << 1 | to, 3 << 1 | 2 << 4 | to, 7 << 1 | 4 << 4 | to]);
            (0..4).for_each(|lane| steps.extend([4 << 1 | lane << 4 | to, 9]));
        }
    }
    let close = [6 << 1 | 15 << 4, 0, 1];
    let all = |carrier: u8| [&[carrier], &steps[..], &close].concat();
    vec![
        ("pair", "datagrams", all(0)),
        ("pair", "datagrams-and-streams", all(1)),
        ("pair", "stream", all(2)),
        ("pair", "cut", [&[0], &steps[..24], &[3 << 1 | 1 << 4, 9, 0, 1]].concat()),
    ]
}
