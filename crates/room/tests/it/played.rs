//! A host without views, and all its output.

use std::collections::BTreeSet;

use sametick_room::Host;
use sametick_room::host::{Input, KnownPlayer, Output};
use sametick_room::message::{Join, ToHost, ToView};
use sametick_sim::record::{Leaving, Record, TickInputs};
use sametick_sim::{Game, Seat, Time};
use sametick_wire::control::{from_bytes, to_bytes};
use sametick_wire::identity::PlayerId;
use sametick_wire::{Channel, Member};

use crate::field::Field;

pub fn player(number: u8) -> PlayerId {
    PlayerId::from_bytes([number; 16])
}

/// A host, and its output for the log and its members.
pub struct Room {
    pub host: Host<Field>,
    pub now: Time,
    pub ticks: Vec<TickInputs>,
    pub said: Vec<Record>,
    pub closed: Vec<(u64, &'static str)>,
    pub refused: Vec<(u64, String)>,
}

impl Room {
    pub fn new(host: Host<Field>, now: Time) -> Room {
        let (ticks, said, closed, refused) = Default::default();
        Room { host, now, ticks, said, closed, refused }
    }

    pub fn come(&mut self, member: u64, number: u8) {
        self.come_as(member, (number, None), false);
    }

    /// A known player joins, with this assigned seat, if any.
    pub fn come_as(&mut self, member: u64, (number, seat): (u8, Option<u16>), is_firm: bool) {
        let (kept, character) = (&[][..], &[][..]);
        let known = KnownPlayer { player: player(number), seat: seat.map(Seat), is_firm, kept, character };
        self.host.handle(self.now, Input::KnownPlayer(Member(member), known));
        let join = Join {
            game: Field::NAME.into(),
            commit: String::new(),
            name: format!("player {number}"),
            setup: Vec::new(),
            seed: 0,
            seats: 16,
            watch: false,
            listed: true,
            resume: None,
            token: None,
            must_resume: false,
        };
        let join = to_bytes(&ToHost::Join(join));
        self.host.handle(self.now, Input::Message(Member(member), Channel::Control, &join));
        self.hear();
    }

    pub fn lose(&mut self, member: u64) {
        self.host.handle(self.now, Input::Closed(Member(member), Leaving::TimedOut));
        self.hear();
    }

    /// Steps this many ticks.
    pub fn run(&mut self, ticks: u32) {
        let until = self.host.tick() + ticks;
        while self.host.tick() < until {
            self.now = self.hear();
            self.host.handle(self.now, Input::Timeout);
        }
        self.hear();
    }

    /// Polls the output until `WakeAt`.
    fn hear(&mut self) -> Time {
        let mut bytes = Vec::new();
        loop {
            match self.host.poll_output(&mut bytes) {
                Output::WakeAt(at) => return at,
                Output::Stepped(_) => self.ticks.push(self.host.inputs().clone()),
                Output::Record(record) => self.said.push(record),
                Output::Close(member, why) => self.closed.push((member.0, why)),
                Output::Send(member, Channel::Control) => {
                    if let Ok(ToView::Refused { why, .. }) = from_bytes(&bytes) {
                        self.refused.push((member.0, why));
                    }
                }
                _ => {}
            }
        }
    }

    pub fn seats(&self) -> BTreeSet<(Option<PlayerId>, Option<Seat>)> {
        self.host.participants().map(|who| (who.player, who.seat)).collect()
    }
}
