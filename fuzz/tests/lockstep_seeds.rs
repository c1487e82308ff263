//! Generates the committed seeds of lockstep's targets and compares them, as `seeds.rs` does for the wire. After a
//! change, `SEEDS=write cargo test --manifest-path fuzz/Cargo.toml --test lockstep_seeds` writes them anew.

#![allow(
    clippy::disallowed_methods,
    reason = "a test that writes files asks the environment whether it should"
)]

use std::fs;
use std::path::Path;

use sametick_lockstep::diagnostics::Diagnostics;
use sametick_lockstep::message::{
    About, Bring, Claim, Join, Pace, Piece, SaveHead, StateAt, ToPeer, ToRelay, put_inputs, put_ticks,
    to_bytes,
};
use sametick_lockstep::rows::{Opaque, Table};
use sametick_sim::diff::Difference;
use sametick_sim::hash::Part;
use sametick_sim::{Inputs, Seat, StateHash, Tick};
use sametick_wire::bits::BitWriter;

type Seed = (&'static str, &'static str, Vec<u8>);

#[test]
fn seeds_are_of_this_protocol() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds");
    let write = std::env::var_os("SEEDS").is_some_and(|what| what == "write");
    for (target, name, bytes) in [to_relay(), to_peer(), ticks(), relays(), peers(), clients()].concat() {
        let path = folder.join(target).join(name);
        if write {
            fs::create_dir_all(folder.join(target)).unwrap();
            fs::write(&path, &bytes).unwrap();
        }
        assert!(fs::read(&path).is_ok_and(|read| read == bytes), "{target}/{name} differs");
    }
}

fn control(kind: u8, name: &'static str, message: Vec<u8>) -> Seed {
    ("control", name, [&[kind], &message[..]].concat())
}

fn to_relay() -> Vec<Seed> {
    let (tick, hash) = (Tick(300), StateHash(0x0123_4567_89ab_cdef));
    let (table, bytes) = (Table::default().to_bytes(), coded().1);
    let join = Join {
        game: "pong".into(),
        commit: "0123abc".into(),
        setup: vec![7, 2],
        seed: 7,
        rate: 60,
        seats: 2,
        wait_for: 2,
        name: "ada".into(),
        watch: false,
        seat: Some(Seat(1)),
        listed: false,
        resume: None,
        bring: None,
    };
    let brought =
        Join { bring: Some(Bring { save: head(), started_unix_ms: 1_800_000_000_000 }), ..join.clone() };
    let part = Part { path: "ball".into(), hash };
    let field = Difference { path: "ball.x".into(), ours: Some("7".into()), theirs: None };
    let state = StateAt { tick, parts: vec![part], bytes: vec![1, 2, 3] };
    let all = [
        ("join", ToRelay::Join(join)),
        ("join-brings", ToRelay::Join(brought)),
        ("resend", ToRelay::Resend { from: tick }),
        ("check", ToRelay::Check { tick, hash }),
        ("hashes", ToRelay::Hashes { first: tick, hashes: vec![hash; 5] }),
        ("state", ToRelay::State(state)),
        ("resynced", ToRelay::Resynced { tick, fields: vec![field] }),
        ("offer", ToRelay::Offer { tick, bytes: Some(40_000) }),
        ("given", ToRelay::Piece(Piece { tick, offset: 2_048, bytes: vec![1, 2, 3] })),
        ("want", ToRelay::Want { tick, offset: 16_384 }),
        ("given-ticks", ToRelay::Ticks { first: Tick(1), ticks: 3, table, bytes }),
    ];
    all.into_iter().map(|(name, message)| control(0, name, to_bytes(&message))).collect()
}

fn head() -> SaveHead {
    let (hash, table) = (StateHash(0x0123_4567_89ab_cdef), Table::default().to_bytes());
    SaveHead { tick: Tick(240), hash, bytes: 40_000, table }
}

fn to_peer() -> Vec<Seed> {
    let (tick, setup) = (Tick(300), vec![7, 2]);
    let (table, bytes) = (Table::default().to_bytes(), coded().1);
    let (seat, since, from) = (Some(Seat(1)), Tick(40), Tick(200));
    let claim = Claim { run: 1, member: 3, seat, since, restarts: 1, from, token: [9; 16] };
    let welcome = ToPeer::Welcome {
        seat: Some(Seat(1)),
        closed: tick,
        first: Tick(1),
        age_us: -5_000,
        setup,
        rate: 60,
        claim,
        save: Some(head()),
        about: About { seed: 7, seats: 2, commit: "0123abc".into(), ..About::default() },
    };
    let all = [
        ("welcome", welcome),
        ("refused", ToPeer::Refused { why: "full".into() }),
        ("ticks", ToPeer::Ticks { first: Tick(1), ticks: 2, table, bytes }),
        ("give-hashes", ToPeer::GiveHashes { from: Tick(1), to: tick }),
        ("give-state", ToPeer::GiveState { tick }),
        ("resync", ToPeer::Resync { tick, state: vec![1, 2, 3] }),
        ("give-save", ToPeer::GiveSave { tick }),
        ("give-piece", ToPeer::GivePiece { tick, offset: 2_048, bytes: 4_096 }),
        ("piece", ToPeer::Piece(Piece { tick, offset: 16_384, bytes: vec![1, 2, 3] })),
        ("load", ToPeer::Load(head())),
        ("give-ticks", ToPeer::GiveTicks { from: Tick(250) }),
    ];
    let mut seeds: Vec<Seed> =
        all.into_iter().map(|(name, message)| control(1 | 4, name, to_bytes(&message))).collect();
    let pace = Pace { tick, least_slack_us: Some(-1_500), omissions: 2, agreed: Tick(270), mismatches: 1 };
    seeds.push(control(2 | 4 | 5 << 3, "pace", to_bytes(&pace)));
    let figures = Diagnostics { depth_ticks: 6, input_rtt_us: 80_000, ..Diagnostics::default() };
    seeds.push(control(3 | 2 << 3, "diagnostics", to_bytes(&figures)));
    seeds
}

/// Three ticks in which a player joins, acts, is late and leaves: as a run, and as history has them.
fn coded() -> (Vec<u8>, Vec<u8>) {
    let mut ticks = [Inputs::new(), Inputs::new(), Inputs::new()];
    for seat in [Seat(1), Seat(31)] {
        ticks[0].join(seat);
        ticks[0].set(seat, Opaque::new(&[0b101]).unwrap());
        ticks[1].set(seat, Opaque::new(&[0b100]).unwrap());
        ticks[2].omit(seat);
    }
    ticks[2].leave(Seat(31));
    let (mut run, mut bytes) = (vec![], vec![]);
    put_ticks(&mut run, Tick(1), &mut Table::default(), ticks.iter());
    let (mut writer, mut table) = (BitWriter::new(&mut bytes), Table::default());
    ticks.iter().for_each(|rows| table.put(&mut writer, rows));
    writer.finish();
    (run, bytes)
}

fn ticks() -> Vec<Seed> {
    let near = |kind: u8, tick: u32, bits: &[u8]| [&[kind], &tick.to_le_bytes()[..], bits].concat();
    let inputs = [[1], [1], [3]].map(|bytes| Opaque::new(&bytes).unwrap());
    let mut own = vec![];
    put_inputs(&mut own, Tick(300), inputs.iter());
    let (run, history) = coded();
    let (mut table, mut rows) = (Table::default(), Inputs::new());
    rows.join(Seat(3));
    rows.set(Seat(3), Opaque::new(b"seven").unwrap());
    table.put(&mut BitWriter::new(&mut vec![]), &rows);
    let start = Table::default().to_bytes();
    let excerpt = [&[start.len() as u8, 1], &start[..], &history].concat();
    vec![
        ("ticks", "inputs", near(0, 290, &own)),
        ("ticks", "run", near(1, 0, &run)),
        ("ticks", "table", near(2, 0, &table.to_bytes())),
        ("ticks", "excerpt", near(3, 1, &excerpt)),
    ]
}

/// A step of the target `relay`: member, action, and an argument.
const fn who(member: u8, what: u8, argument: u8) -> u8 {
    member | what << 2 | argument << 5
}

fn relays() -> Vec<Seed> {
    let come_as = |count: u8, how: u8| {
        let joins = (0..count).flat_map(move |member| [who(member, 0, 0), who(member, 1, how)]);
        // The remains of the session are reported.
        joins.chain([who(0, 5, 5)])
    };
    let come = |count: u8| come_as(count, 0);
    let wait = [who(0, 5, 2)];
    // Each player sends an input; ticks close.
    let play = || (0..3).flat_map(|member| [who(member, 2, 1), 1, member]).chain([who(0, 5, 2)]);
    let played = || come(3).chain(wait).chain(play()).chain(play());
    let check = |hashes: [u8; 3]| (0..3).zip(hashes).map(|(member, hash)| who(member, 3, hash));
    let agreed = played().chain(check([1, 1, 1])).chain([who(1, 6, 0), who(0, 5, 3), who(0, 5, 3)]);
    // One peer is desynced; it is asked for hashes and its state, and gets the good one.
    let answers = [who(0, 4, 0), who(2, 4, 1), who(0, 4, 4), who(2, 4, 5), who(2, 4, 6), who(0, 5, 2)];
    let odd = played().chain(check([1, 1, 2])).chain(answers);
    let split = played().chain(check([1, 2, 3])).chain(answers).chain([who(0, 4, 7), who(0, 5, 3)]);
    let resend = [who(0, 7, 0), 3, 1, 1, 0];
    let strange = come(1).chain(wait).chain(resend).chain([who(0, 7, 4), 2, 0xff, 0xff, who(3, 6, 7)]);
    let watch = come(2).chain([who(2, 0, 0), who(2, 1, 2)]).chain(wait).chain(play());
    // The relay is killed, and has lost a few ticks; all rejoin with their claims, and two give their ticks.
    let given = [who(0, 5, 7), who(1, 5, 7), who(0, 5, 2), who(0, 5, 2)];
    let killed = played().chain([who(2, 5, 4)]).chain(come_as(3, 4)).chain(given).chain(play());
    // All leave, and come back when the session has ended.
    let leave = (0..3).map(|member| who(member, 6, 0)).chain([who(0, 5, 3), who(0, 5, 3)]);
    let ended = played().chain(leave).chain(come_as(3, 4)).chain(wait).chain(play());
    // The found session is made up: a save after the fourth tick, and a seated player who acts and leaves.
    let made_up = [who(0, 5, 6), 12, 1, 4, 1, 0xff, 0x55, 0x55, 0x15, 0x55, 0x95, 0x11, 0x55, 0];
    let first = [who(0, 0, 0), who(0, 1, 0)];
    let found = first.into_iter().chain(made_up).chain([who(0, 5, 2); 6]).chain(play());
    // The driver assigns the seats; two change seats, the relay is killed, and in the end it is ended.
    let on_terms = |member: u8, seat: u8| {
        [who(member, 0, 0), who(member, 7, 6), (member & 1) | seat << 3, who(member, 1, 4)]
    };
    let sit = |a: u8, b: u8| on_terms(0, a).into_iter().chain(on_terms(1, b)).chain([who(0, 5, 5)]);
    let change = || on_terms(2, 1).into_iter().chain(on_terms(3, 2)).chain([who(0, 5, 2); 3]);
    let killed_on_terms = || [who(2, 5, 4)].into_iter().chain(sit(1, 2)).chain([who(0, 5, 2); 6]);
    let over = [who(0, 7, 7), 0];
    let terms = sit(2, 1).chain(wait).chain(play()).chain(change()).chain(killed_on_terms()).chain(over);
    vec![
        ("relay", "terms", terms.collect()),
        ("relay", "killed", killed.collect()),
        ("relay", "ended", ended.collect()),
        ("relay", "found", found.collect()),
        ("relay", "agreed", agreed.collect()),
        ("relay", "odd", odd.collect()),
        ("relay", "split", split.collect()),
        ("relay", "strange", strange.collect()),
        ("relay", "watch", watch.collect()),
    ]
}

fn peers() -> Vec<Seed> {
    let what = |what: u8, argument: u8| what | argument << 3;
    let welcome = [what(0, 0)];
    let play = || [what(1, 1), what(4, 1), what(1, 2), what(4, 1), what(2, 15), what(1, 0), what(4, 1)];
    let long = || (0..12).flat_map(|_| play());
    let asked = [what(3, 0), what(3, 1), what(3, 9), what(3, 7), what(4, 1), what(1, 1)];
    let all = welcome.into_iter().chain(long()).chain(asked).chain(long());
    // A gap: early frames are kept and the missing one is requested.
    let raw = [what(5, 4), 3, 0x2c, 0x01, 0x00, what(4, 2), what(5, 0), 2, 3, 0];
    let gap = welcome.into_iter().chain(play()).chain(raw).chain(play());
    let watch = [what(0, 4)].into_iter().chain(long()).chain([what(1, 20), what(1, 1), what(4, 3)]);
    let back = [what(4, 28), what(0, 16)];
    let back = welcome
        .into_iter()
        .chain(long())
        .chain(back)
        .chain(play())
        .chain([what(4, 31), what(0, 0)])
        .chain(play());
    let stalled = welcome.into_iter().chain([what(4, 3), what(4, 3)]).chain(play());
    vec![
        ("peer", "played", all.collect()),
        ("peer", "gap", gap.collect()),
        ("peer", "watch", watch.collect()),
        ("peer", "stalled", stalled.collect()),
        ("peer", "back", back.collect()),
    ]
}

fn clients() -> Vec<Seed> {
    let what = |what: u8, argument: u8| what | argument << 3;
    let time = || [what(6, 1), what(6, 1), what(6, 1)];
    let open = [what(1, 0), what(6, 0), what(5, 0)];
    let play = || (0..8).flat_map(move |_| [what(5, 1), what(6, 1), what(5, 2)].into_iter().chain(time()));
    let lost = [what(4, 0), what(6, 2), what(1, 0), what(5, 3)];
    let all = open.into_iter().chain(play()).chain(lost).chain(play()).chain([what(7, 3)]).chain(time());
    let raw = open.into_iter().chain([what(2, 0), 3, 1, 2, 3, what(3, 1), 2, 9, 9, what(0, 0), 1, 7]);
    let refused = [what(0, 0), 7, b'S', b'T', b'C', b'K', 1, 0, 0, what(6, 3), what(6, 3), what(6, 3)];
    let bad =
        open.into_iter().chain([what(7, 1)]).chain(play()).chain([what(7, 0), what(6, 3)]).chain(play());
    vec![
        ("client", "played", all.collect()),
        ("client", "raw", raw.collect()),
        ("client", "refused", refused.into()),
        ("client", "bad_network", bad.collect()),
    ]
}
