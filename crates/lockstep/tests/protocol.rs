//! The examples of the lockstep messages in docs/protocol.md match the code.

use std::fmt::Write;

use sametick_lockstep::diagnostics::Diagnostics;
use sametick_lockstep::history::Excerpt;
use sametick_lockstep::message::{
    About, Bring, Claim, Join, Pace, Piece, Resume, SaveHead, Seated, StateAt, ToPeer, ToRelay, from_bytes,
    put_inputs, put_ticks, read_inputs, read_ticks, to_bytes,
};
use sametick_lockstep::rows::{Opaque, Table};
use sametick_sim::diff::Difference;
use sametick_sim::hash::Part;
use sametick_sim::{Inputs, Seat, StateHash, Tick};

const DOCUMENT: &str = include_str!("../../../docs/protocol.md");

/// Bytes as the document writes them: two digits each, 32 bytes per line.
fn hex(bytes: &[u8]) -> String {
    let mut out = String::new();
    for (at, byte) in bytes.iter().enumerate() {
        let before = match at {
            0 => "",
            at if at % 32 == 0 => "\n",
            _ => " ",
        };
        write!(out, "{before}{byte:02x}").unwrap();
    }
    out
}

/// A line of the document: its name and its bytes.
#[track_caller]
fn documented(what: &str, bytes: &[u8]) {
    let line = format!("{what:9} {}\n", hex(bytes));
    assert!(DOCUMENT.contains(&line), "docs/protocol.md lacks:\n{line}");
}

const CLAIM: Claim = Claim {
    run: 300,
    member: 7,
    seat: Some(Seat(1)),
    since: Tick(1),
    restarts: 1,
    from: Tick(300),
    token: [9; 16],
};

const HASH: StateHash = StateHash(0x0123_4567_89ab_cdef);

fn head() -> SaveHead {
    SaveHead { tick: Tick(300), hash: HASH, bytes: 40_000, table: Table::default().to_bytes() }
}

fn bring() -> Bring {
    Bring { save: head(), started_unix_ms: 1_800_000_000_000 }
}

fn about() -> About {
    let (commit, started_unix_ms) = ("0123abc".into(), 1_800_000_000_000);
    About { seed: 7, seats: 2, listed: true, commit, started_unix_ms }
}

#[test]
fn messages_to_the_relay() {
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
        seat: None,
        listed: true,
        resume: Some(Resume { claim: CLAIM, have: Tick(300) }),
        bring: None,
    };
    let brought = Join { resume: None, bring: Some(bring()), ..join.clone() };
    let part = Part { path: "ball".into(), hash: HASH };
    let state = StateAt { tick: Tick(301), parts: vec![part], bytes: vec![1, 2, 3] };
    let field = Difference { path: "ball.x".into(), ours: Some("7".into()), theirs: None };
    let (table, bytes) = (Table::default().to_bytes(), coded_ticks().1);
    let lost = ToRelay::Ticks { first: Tick(1), ticks: 2, table, bytes };
    let all = [
        ("Join", ToRelay::Join(join)),
        ("Brings", ToRelay::Join(brought)),
        ("Resend", ToRelay::Resend { from: Tick(301) }),
        ("Check", ToRelay::Check { tick: Tick(300), hash: HASH }),
        ("Hashes", ToRelay::Hashes { first: Tick(271), hashes: vec![HASH, StateHash(1)] }),
        ("State", ToRelay::State(state)),
        ("Resynced", ToRelay::Resynced { tick: Tick(301), fields: vec![field] }),
        ("Offer", ToRelay::Offer { tick: Tick(300), bytes: Some(40_000) }),
        ("Given", ToRelay::Piece(Piece { tick: Tick(300), offset: 2_048, bytes: vec![1, 2, 3] })),
        ("Want", ToRelay::Want { tick: Tick(300), offset: 16_384 }),
        ("Lost", lost),
    ];
    for (what, message) in all {
        documented(what, &to_bytes(&message));
        assert_eq!(from_bytes(&to_bytes(&message)), Ok(message));
    }
}

#[test]
fn messages_to_a_peer() {
    let (first, ticks, table) = (Tick(1), 2, Table::default().to_bytes());
    let head = head();
    let all = [
        (
            "Welcome",
            ToPeer::Welcome {
                seat: Some(Seat(1)),
                closed: Tick(300),
                first: Tick(1),
                age_us: 5_000,
                setup: vec![7, 2],
                rate: 60,
                claim: CLAIM,
                save: None,
                about: about(),
            },
        ),
        (
            "Late",
            ToPeer::Welcome {
                seat: None,
                closed: Tick(400),
                first: Tick(301),
                age_us: 5_000,
                setup: vec![7, 2],
                rate: 60,
                claim: CLAIM,
                save: Some(head.clone()),
                about: about(),
            },
        ),
        ("GiveSave", ToPeer::GiveSave { tick: Tick(300) }),
        ("GivePiece", ToPeer::GivePiece { tick: Tick(300), offset: 2_048, bytes: 4_096 }),
        ("Piece", ToPeer::Piece(Piece { tick: Tick(300), offset: 16_384, bytes: vec![1, 2, 3] })),
        ("Load", ToPeer::Load(head)),
        ("GiveTicks", ToPeer::GiveTicks { from: Tick(301) }),
        (
            "Roster",
            ToPeer::Roster { players: vec![Seated { seat: Seat(1), name: "ada".into() }], spectators: 2 },
        ),
        ("Refused", ToPeer::Refused { why: "the session is full".into() }),
        ("Ticks", ToPeer::Ticks { first, ticks, table, bytes: coded_ticks().1 }),
        ("GiveHash", ToPeer::GiveHashes { from: Tick(271), to: Tick(300) }),
        ("GiveState", ToPeer::GiveState { tick: Tick(301) }),
        ("Resync", ToPeer::Resync { tick: Tick(301), state: vec![1, 2, 3] }),
    ];
    for (what, message) in all {
        documented(what, &to_bytes(&message));
        assert_eq!(from_bytes(&to_bytes(&message)), Ok(message));
    }
}

#[test]
fn reports() {
    let (tick, agreed) = (Tick(315), Tick(300));
    let pace = Pace { tick, least_slack_us: Some(-1_500), omissions: 2, agreed, mismatches: 0 };
    documented("Pace", &to_bytes(&pace));
    let diagnostics = Diagnostics {
        depth_ticks: 6,
        depth_range_ticks: (5, 7),
        input_rtt_us: 80_000,
        usual_input_rtt_us: 79_000,
        jitter_us: 300,
        link_rtt_us: 61_000,
        rollbacks: 12,
        resimulated_ticks: 70,
        agreed,
        ticks_per_second: 60,
        ..Diagnostics::default()
    };
    documented("Figures", &to_bytes(&diagnostics));
}

/// Two ticks: seat 1 is taken and holds a button, then releases it. First as a run, then as history keeps it.
fn coded_ticks() -> (Vec<u8>, Vec<u8>) {
    let (mut one, mut two) = (Inputs::new(), Inputs::new());
    one.join(Seat(1));
    one.set(Seat(1), Opaque::new(&[0b101]).unwrap());
    two.set(Seat(1), Opaque::new(&[0b001]).unwrap());
    let mut run = vec![];
    put_ticks(&mut run, Tick(1), &mut Table::default(), [&one, &two].into_iter());
    let mut bytes = vec![];
    let mut writer = sametick_wire::bits::BitWriter::new(&mut bytes);
    let mut table = Table::default();
    [&one, &two].into_iter().for_each(|rows| table.put(&mut writer, rows));
    writer.finish();
    (run, bytes)
}

#[test]
fn inputs_and_ticks() {
    let inputs = [[0b101], [0b101], [0b100]].map(|bytes| Opaque::new(&bytes).unwrap());
    let mut bytes = vec![];
    put_inputs(&mut bytes, Tick(300), inputs.iter());
    documented("Inputs", &bytes);
    let mut got = vec![];
    read_inputs(&bytes, Tick(280), |tick, input| got.push((tick, input))).unwrap();
    assert!(got.into_iter().eq((300..).map(Tick).zip(inputs)));

    let (run, history) = coded_ticks();
    documented("Run", &run);
    let mut seen = vec![];
    let (mut table, mut rows) = (Table::default(), Inputs::new());
    let see = |tick, rows: &Inputs<Opaque>| seen.push((tick, rows.clone()));
    read_ticks(&run, (Tick::ZERO, Tick::ZERO), &mut table, &mut rows, see).unwrap();
    let excerpt = Excerpt { first: Tick(1), ticks: 2, start: Table::default(), bytes: history };
    let mut again = vec![];
    let after = excerpt.read(|tick, rows| again.push((tick, rows.clone()))).unwrap();
    assert_eq!((&seen, &table), (&again, &after));
    assert_eq!(seen.len(), 2);
    documented("Table", &table.to_bytes());
}
