//! A peer of a session that is taken up again.

use postcard_schema::Schema;
use sametick_lockstep::message::{self, ToPeer, ToRelay, put_ticks, read_inputs};
use sametick_lockstep::peer::{self, JoinAs, Peer};
use sametick_lockstep::rows::{Opaque, Table};
use sametick_lockstep::session::START_DELAY_US;
use sametick_sim::{BuildId, Game, Inputs, Seat, Tick, TickRate, Time};
use sametick_wire::Channel;
use sametick_wire::pacer::Path;
use serde::{Deserialize, Serialize};

use crate::den::live;

/// A game that adds up.
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

/// Lets a peer play up to a time; what it hands in for a tick is its number. Returns what it sent.
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

#[test]
fn a_peer_goes_back_sends_its_inputs_again_and_gives_what_it_has() {
    let claim = live(1).claims[0];
    let welcome = |closed: u32, first: u32, age_us| ToPeer::Welcome {
        seat: Some(Seat(0)),
        closed: Tick(closed),
        first: Tick(first),
        age_us,
        setup: vec![],
        rate: 60,
        claim,
        save: None,
    };
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
    let at = |tick: u32| Time::from_micros(START_DELAY_US + u64::from(tick) * 1_000_000 / 60);
    let mut peer = Peer::new(Time::ZERO, &join, Path::default());
    tell(&mut peer, Time::ZERO, &welcome(0, 1, -(START_DELAY_US as i64)));
    let (mut table, mut totals) = (Table::default(), vec![Total(0)]);
    for tick in 1..=100 {
        let (mut rows, mut bytes) = (Inputs::new(), vec![]);
        if tick == 1 {
            rows.join(Seat(0));
        }
        rows.set(Seat(0), Opaque::new(&[tick as u8]).unwrap());
        put_ticks(&mut bytes, Tick(tick), &mut table, [&rows].into_iter());
        peer.handle(at(tick), peer::Input::Message(Channel::Input, &bytes)).unwrap();
        run(&mut peer, at(tick));
        totals.push(peer.confirmed().map(|(_, state)| state.clone()).unwrap());
    }
    let shown = peer.shown().unwrap().0;
    assert!(shown >= Tick(100));
    peer.rejoin(at(300), Path::default());
    run(&mut peer, at(300));
    tell(&mut peer, at(301), &ToPeer::GiveTicks { from: Tick(91) });
    let given = run(&mut peer, at(301));
    let [(Channel::Chunks, bytes)] = &given[..] else { panic!("{given:?}") };
    let Ok(ToRelay::Ticks { first, ticks, .. }) = message::from_bytes(bytes) else {
        panic!("ticks are given")
    };
    assert!(first <= Tick(91) && first.0 + ticks == 101);
    tell(&mut peer, at(302), &welcome(80, 81, -(START_DELAY_US as i64)));
    let (tick, state) = peer.confirmed().map(|(tick, state)| (tick, state.0)).unwrap();
    assert_eq!((tick, state, peer.stats().rewinds), (Tick(80), totals[80].0, 1));
    let mut again = vec![];
    for (_, bytes) in run(&mut peer, at(302)).iter().filter(|(channel, _)| *channel == Channel::Input) {
        read_inputs(bytes, Tick(80), |tick, input| again.push((tick, input.as_bytes()[0]))).unwrap();
    }
    let expected: Vec<(Tick, u8)> = (81..=shown.0).map(|tick| (Tick(tick), tick as u8)).collect();
    assert_eq!(again, expected, "what it did is done again, as it was");
    assert_eq!(peer.shown().unwrap().0, shown, "and nobody sees a jump");
}
