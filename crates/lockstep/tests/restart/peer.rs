//! A peer whose session is resumed after a relay restart.

use postcard_schema::Schema;
use sametick_lockstep::message::{self, About, ToPeer, ToRelay, put_ticks, read_inputs};
use sametick_lockstep::peer::{self, JoinAs, MAX_PREDICTED, Peer};
use sametick_lockstep::rows::{Opaque, Table};
use sametick_lockstep::session::START_DELAY_US;
use sametick_sim::{BuildId, Game, Inputs, Rng, Seat, Tick, TickRate, Time, to_canonical};
use sametick_wire::Channel;
use sametick_wire::bits::BitWriter;
use sametick_wire::pacer::Path;
use serde::{Deserialize, Serialize};

use crate::den::live;

/// A game that adds up its inputs.
#[derive(Clone, Serialize, Deserialize, Schema)]
struct Total(u64);

impl Game for Total {
    const NAME: &'static str = "total";
    const RATE: TickRate = TickRate::hz(60);
    const BUILD: BuildId = BuildId::from_bytes([1; 16]);
    type Setup = ();
    type Input = u8;

    fn new((): &()) -> Total {
        Total(0)
    }

    fn step(&mut self, inputs: &Inputs<u8>) {
        self.0 = inputs.iter().fold(self.0.rotate_left(5), |sum, row| sum ^ u64::from(*row.input_or(&0)));
    }
}

fn tell(peer: &mut Peer<Total>, now: Time, message: &ToPeer) {
    peer.handle(now, peer::Input::Message(Channel::Control, &message::to_bytes(message))).unwrap();
}

/// Runs a peer up to a time; its input for a tick is the tick's number. Returns the messages it sent.
fn run(peer: &mut Peer<Total>, now: Time) -> Vec<(Channel, Vec<u8>)> {
    let (mut sent, mut buf) = (vec![], vec![]);
    loop {
        match peer.poll_output(&mut buf) {
            peer::Output::Send(channel) => sent.push((channel, buf.clone())),
            peer::Output::WantInput(tick) => peer.handle(now, peer::Input::Local(tick.0 as u8)).unwrap(),
            peer::Output::WantPath => peer.handle(now, peer::Input::Path(Path::default())).unwrap(),
            peer::Output::WakeAt(_) | peer::Output::Wait => return sent,
        }
    }
}

/// A peer with a simulated relay.
struct Alone {
    peer: Peer<Total>,
    table: Table,
    /// The confirmed state after each tick.
    totals: Vec<Total>,
    /// The table after each.
    tables: Vec<Table>,
}

fn at(tick: u32) -> Time {
    Time::from_micros(START_DELAY_US + u64::from(tick) * 1_000_000 / 60)
}

fn welcome(closed: u32, first: u32, age_us: i64) -> ToPeer {
    let claim = live(1).claims[0];
    let (seat, setup) = (Some(Seat(0)), vec![]);
    ToPeer::Welcome {
        seat,
        closed: Tick(closed),
        first: Tick(first),
        age_us,
        setup,
        rate: 60,
        claim,
        save: None,
        about: About::default(),
    }
}

impl Alone {
    /// Another player is seated as well.
    fn new() -> Alone {
        let join = JoinAs::<Total> {
            setup: (),
            seed: 0,
            seats: 2,
            wait_for: 1,
            name: "ada".into(),
            commit: String::new(),
            watch: false,
            listed: false,
        };
        let mut peer = Peer::new(Time::ZERO, &join, Path::default());
        tell(&mut peer, Time::ZERO, &welcome(0, 1, -(START_DELAY_US as i64)));
        Alone { peer, table: Table::default(), totals: vec![Total(0)], tables: vec![Table::default()] }
    }

    /// The relay closes the next tick.
    fn close(&mut self, other: u8) {
        let tick = self.totals.len() as u32;
        let (mut rows, mut bytes) = (Inputs::new(), vec![]);
        for (seat, input) in [(Seat(0), tick as u8), (Seat(1), other)] {
            if tick == 1 {
                rows.join(seat);
            }
            rows.set(seat, Opaque::new(&[input]).unwrap());
        }
        put_ticks(&mut bytes, Tick(tick), &mut self.table, [&rows].into_iter());
        self.peer.handle(at(tick), peer::Input::Message(Channel::Input, &bytes)).unwrap();
        run(&mut self.peer, at(tick));
        let (confirmed, state) = self.peer.confirmed().unwrap();
        assert_eq!(confirmed, Tick(tick));
        self.totals.push(state.clone());
        self.tables.push(self.table.clone());
    }

    /// The session was resumed from this tick.
    fn go_back(&mut self, to: u32) {
        self.totals.truncate(to as usize + 1);
        self.tables.truncate(to as usize + 1);
        self.table = self.tables[to as usize].clone();
    }
}

/// Wherever it is rewound to, a peer has the state of that tick and repeats its inputs up to the tick on screen.
#[test]
fn a_peer_rewinds_to_any_tick_that_it_keeps() {
    for seed in 0..120 {
        let mut rng = Rng::new(seed);
        let mut alone = Alone::new();
        let last = 130 + rng.below(400) as u32;
        (1..=last).for_each(|_| alone.close(rng.below(4) as u8));
        let to = last - rng.below(121) as u32;
        // No peer is further ahead than that.
        let shown = alone.peer.shown().unwrap().0.min(Tick(to + MAX_PREDICTED));
        let time = at(last + 100);
        alone.peer.rejoin(time, Path::default());
        run(&mut alone.peer, time);
        tell(&mut alone.peer, time, &welcome(to, to + 1, -(START_DELAY_US as i64)));
        let (tick, state) = alone.peer.confirmed().map(|(tick, state)| (tick, state.0)).unwrap();
        assert_eq!((tick, state), (Tick(to), alone.totals[to as usize].0), "seed {seed}");
        assert_eq!(alone.peer.stats().rewinds, u32::from(to < last), "seed {seed}");
        let mut again = vec![];
        for (_, bytes) in run(&mut alone.peer, time).iter().filter(|(channel, _)| *channel == Channel::Input)
        {
            read_inputs(bytes, Tick(to), |tick, input| again.push((tick, input.as_bytes()[0]))).unwrap();
        }
        let expected: Vec<(Tick, u8)> = (to + 1..=shown.0).map(|tick| (Tick(tick), tick as u8)).collect();
        assert_eq!(again, expected, "seed {seed}");
        assert_eq!(alone.peer.shown().unwrap().0, shown, "seed {seed}: no more of a jump than there must be");
        // The peer goes on from there.
        alone.go_back(to);
        let mut total = alone.totals[to as usize].clone();
        for tick in to + 1..to + 40 {
            let other = rng.below(4) as u8;
            alone.close(other);
            let mut inputs = Inputs::new();
            inputs.set(Seat(0), tick as u8);
            inputs.set(Seat(1), other);
            total.step(&inputs);
            assert_eq!(alone.peer.confirmed().unwrap().1.0, total.0, "seed {seed}, tick {tick}");
        }
    }
}

/// Regression: a resynced peer read the ticks after a rewind with the wrong table, when the session was resumed from
/// the tick of that resync.
#[test]
fn a_resynced_peer_knows_the_taken_seats() {
    let mut alone = Alone::new();
    (1..=100).for_each(|tick| alone.close(tick));
    let good = to_canonical(&alone.totals[80]).unwrap();
    alone.peer.tamper(|state| state.0 ^= 1);
    tell(&mut alone.peer, at(101), &ToPeer::Resync { tick: Tick(80), state: good });
    run(&mut alone.peer, at(101));
    alone.peer.rejoin(at(200), Path::default());
    run(&mut alone.peer, at(200));
    tell(&mut alone.peer, at(201), &welcome(80, 81, -(START_DELAY_US as i64)));
    alone.go_back(80);
    let mut total = alone.totals[80].clone();
    // Nothing changes for the other player: that is one bit, coded against its last input.
    alone.close(80);
    let mut inputs = Inputs::new();
    inputs.set(Seat(0), 81);
    inputs.set(Seat(1), 80);
    total.step(&inputs);
    assert_eq!(alone.peer.confirmed().unwrap().1.0, total.0);
}

#[test]
fn a_peer_gives_the_ticks_it_keeps() {
    let mut alone = Alone::new();
    (1..=900).for_each(|tick| alone.close(tick as u8));
    alone.peer.rejoin(at(1_000), Path::default());
    run(&mut alone.peer, at(1_000));
    for from in [901, 850, 620, 310, 290, 1] {
        tell(&mut alone.peer, at(1_001), &ToPeer::GiveTicks { from: Tick(from) });
        let mut next = None;
        for (channel, bytes) in run(&mut alone.peer, at(1_001)) {
            let Ok(ToRelay::Ticks { first, ticks, .. }) = message::from_bytes(&bytes) else {
                panic!("ticks are given")
            };
            assert_eq!(channel, Channel::Chunks);
            assert!(next.is_none_or(|next| next == first) && ticks <= 300);
            assert!(ticks == 0 || next.is_some() || first <= Tick(from), "from {from}: {first}");
            next = Some(first + ticks);
        }
        // Ten seconds of 60 ticks are kept, in whole runs.
        let expected = if (290..=900).contains(&from) && from > 300 { Tick(901) } else { Tick(from) };
        assert_eq!(next, Some(expected), "from {from}");
    }
}

/// Regression: a relay's new seat table was kept beside its earlier one, and the two contradicted each other.
#[test]
fn a_relay_that_contradicts_itself_breaks_no_peer() {
    let mut alone = Alone::new();
    (1..=50).for_each(|tick| alone.close(tick));
    // Another player is seated there, and no player has left.
    let (mut start, mut rows, mut bytes) = (Table::default(), Inputs::new(), vec![]);
    rows.join(Seat(5));
    rows.set(Seat(5), Opaque::new(&[9]).unwrap());
    start.put(&mut BitWriter::new(&mut vec![]), &rows);
    let (table, mut after) = (start.to_bytes(), start);
    rows.clear();
    rows.set(Seat(5), Opaque::new(&[8]).unwrap());
    let mut writer = BitWriter::new(&mut bytes);
    (0..10).for_each(|_| after.put(&mut writer, &rows));
    writer.finish();
    tell(&mut alone.peer, at(51), &ToPeer::Ticks { first: Tick(51), ticks: 10, table, bytes });
    run(&mut alone.peer, at(51));
    assert_eq!(alone.peer.confirmed().unwrap().0, Tick(60));
    let mut bytes = vec![];
    put_ticks(&mut bytes, Tick(61), &mut after, [&rows].into_iter());
    alone.peer.handle(at(61), peer::Input::Message(Channel::Input, &bytes)).unwrap();
    run(&mut alone.peer, at(61));
    alone.peer.rejoin(at(100), Path::default());
    let sent = run(&mut alone.peer, at(100));
    let Ok(ToRelay::Join(join)) = message::from_bytes(&sent[0].1) else { panic!("it asks to join") };
    assert_eq!(join.resume.map(|resume| resume.have), Some(Tick(61)));
}
