//! A host as the server: arena in a room.

use sametick_arena::{self as arena, Arena, Setup, pilot};
use sametick_room::host::{Input, Output};
use sametick_room::message::ToHost;
use sametick_room::view::{JoinAs, View};
use sametick_room::{Host, HostConfig};
use sametick_sim::record::Leaving;
use sametick_sim::replica::hosted_schema_of;
use sametick_sim::{StateHash, Tick, Time};
use sametick_wire::hello::{Hello, Intent};
use sametick_wire::identity::Token;
use sametick_wire::{Channel, Member, control};

use crate::world::{Server, Wanted};

/// The most players.
pub const SEATS: u16 = 3;

pub struct Room {
    pub host: Host<Arena>,
    /// The identity tokens that clients presented.
    pub tokens: Vec<Option<Token>>,
    wake_at: Time,
}

impl Server for Room {
    type Side = View<Arena>;

    fn new(now: Time, run: u8, seed: u64) -> Room {
        let setup = Setup { seed, seats: SEATS, ..Setup::default() };
        let config = HostConfig { seats: SEATS, secret: [run; 32], ..HostConfig::default() };
        Room { host: Host::new(now, &setup, config), tokens: Vec::new(), wake_at: now }
    }

    fn join(seed: u64, number: usize) -> JoinAs<Arena> {
        JoinAs {
            name: format!("p{number}"),
            commit: "c0ffee".into(),
            setup: Setup { seed, seats: SEATS, ..Setup::default() },
            seed,
            seats: SEATS,
            watch: false,
            listed: false,
        }
    }

    fn open(&mut self, _: Time, _: Member, hello: &Hello) {
        assert_eq!(hello.intent, Intent::Enter { room: "den".into() });
        assert_eq!(hello.identity.schema, hosted_schema_of::<Arena>());
    }

    fn message(&mut self, now: Time, member: Member, channel: Channel, bytes: &[u8]) {
        if let (Channel::Control, Ok(ToHost::Join(join))) = (channel, control::from_bytes(bytes)) {
            self.tokens.push(join.token);
        }
        self.host.handle(now, Input::Message(member, channel, bytes));
    }

    fn closed(&mut self, now: Time, member: Member, why: Leaving) {
        self.host.handle(now, Input::Closed(member, why));
    }

    fn run(&mut self, now: Time) {
        if self.wake_at <= now {
            self.host.handle(now, Input::Timeout);
        }
    }

    fn poll(&mut self, buf: &mut Vec<u8>) -> Option<Wanted> {
        Some(match self.host.poll_output(buf) {
            Output::Send(member, channel) => Wanted::Send(member, channel),
            Output::Close(member, why) => Wanted::Close(member, why),
            Output::Record(record) => Wanted::Record(record),
            Output::Stepped(_) | Output::Keep(_) | Output::Kept(_) => Wanted::Nothing,
            Output::WakeAt(at) => {
                self.wake_at = at;
                return None;
            }
        })
    }

    fn play(view: &View<Arena>) -> arena::Input {
        let own = view.predicted().map(|(_, own)| pilot(own, view.newest(), view.tick(), 1));
        own.unwrap_or_default()
    }

    fn agreed(_: &View<Arena>) -> Option<(Tick, StateHash)> {
        None
    }
}
