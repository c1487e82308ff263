//! A relay as the server: pong in lockstep.

use sametick_lockstep::assignment::SeatAssignment;
use sametick_lockstep::peer::{JoinAs, Peer};
use sametick_lockstep::relay::{Input, Output, Relay, RelayConfig, SessionKey};
use sametick_lockstep::session::Session;
use sametick_pong::{self as pong, Pong, Setup, autopilot};
use sametick_sim::record::Leaving;
use sametick_sim::{Game, Seat, StateHash, Tick, Time, to_canonical};
use sametick_wire::hello::{Hello, Intent};
use sametick_wire::identity::PlayerId;
use sametick_wire::{Channel, Member};

use crate::world::{Server, Wanted};

pub struct Relayed {
    relay: Relay,
    wake_at: Time,
}

impl Relayed {
    pub fn session(&self) -> &Session {
        let key = SessionKey { build: Pong::BUILD, name: "den".into() };
        self.relay.find(&key).and_then(|id| self.relay.session(id)).expect("the session runs")
    }
}

/// In these tests a pass is a player and a seat.
fn terms_of(pass: &[u8]) -> SeatAssignment {
    let [player, seat] = pass else { panic!("{pass:?}") };
    SeatAssignment {
        player: PlayerId((*player).into()),
        name: format!("player {player}"),
        seat: Some(Seat((*seat).into())),
        game: Pong::NAME.into(),
        rate: Pong::RATE,
        setup: to_canonical(&Setup { players: 4, ..Setup::default() }).unwrap(),
        seed: 0,
        seats: 4,
        listed: false,
    }
}

impl Server for Relayed {
    type Side = Peer<Pong>;

    fn new(now: Time, run: u8, _: u64) -> Relayed {
        let config = RelayConfig { secret: [run; 32], ..RelayConfig::default() };
        Relayed { relay: Relay::new(config), wake_at: now }
    }

    fn join(seed: u64, number: usize) -> JoinAs<Pong> {
        JoinAs {
            setup: Setup { seed, ..Setup::default() },
            seed,
            seats: 2,
            wait_for: 1,
            name: format!("p{number}"),
            commit: "c0ffee".into(),
            watch: false,
            listed: false,
        }
    }

    fn open(&mut self, now: Time, member: Member, hello: &Hello) {
        let Intent::Join { session } = &hello.intent else { panic!("they join") };
        let key = SessionKey { build: hello.identity.build, name: session.clone() };
        self.relay.handle(now, Input::Opened(member, key, hello.identity.schema));
        if let Some(terms) = hello.pass.as_deref().map(terms_of) {
            self.relay.handle(now, Input::Assigned(member, terms));
        }
    }

    fn message(&mut self, now: Time, member: Member, channel: Channel, bytes: &[u8]) {
        self.relay.handle(now, Input::Message(member, channel, bytes));
    }

    fn closed(&mut self, now: Time, member: Member, why: Leaving) {
        self.relay.handle(now, Input::Closed(member, why));
    }

    fn run(&mut self, now: Time) {
        if self.wake_at <= now {
            self.relay.handle(now, Input::Timeout);
        }
    }

    fn poll(&mut self, buf: &mut Vec<u8>) -> Option<Wanted> {
        Some(match self.relay.poll_output(buf) {
            Output::Send(member, channel) => Wanted::Send(member, channel),
            Output::Close(member, why) => Wanted::Close(member, why),
            Output::Record(_, record) => Wanted::Record(record),
            Output::WakeAt(at) => {
                self.wake_at = at;
                return None;
            }
            Output::Wait => return None,
            _ => Wanted::Nothing,
        })
    }

    fn play(peer: &Peer<Pong>) -> pong::Input {
        let played = peer.shown().zip(peer.seat());
        played.map(|((_, pong), seat)| autopilot(pong, seat)).unwrap_or_default()
    }

    fn agreed(peer: &Peer<Pong>) -> Option<(Tick, StateHash)> {
        peer.confirmed().map(|(tick, state)| (tick, StateHash::of(state)))
    }
}
