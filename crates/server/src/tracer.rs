//! The relay's side of the message trace: adds sessions and seats, waiting times of inputs, and omissions.

use std::collections::HashMap;

use sametick_lockstep::message::read_inputs;
use sametick_lockstep::relay::{Relay, SessionKey};
use sametick_lockstep::session::{Member, Session};
use sametick_sim::{Seat, Tick};
use sametick_wire::message_log::Logged;
use sametick_wire::{Channel, Time};

use crate::trace::{ClosedLine, Present, Trace, unix_us};

/// The number of latest inputs of a player whose arrival times are kept.
const REMEMBERED: usize = 128;

struct Traced {
    session: SessionKey,
    seat: Option<Seat>,
    arrived: [Option<(Tick, Time)>; REMEMBERED],
}

/// Traces the messages of a relay.
pub struct Tracer {
    trace: Trace,
    members: HashMap<Member, Traced>,
}

impl Tracer {
    /// Writes into this trace.
    pub fn new(trace: Trace) -> Tracer {
        Tracer { trace, members: HashMap::new() }
    }

    /// A link has opened.
    pub fn opened(&mut self, member: Member, session: &SessionKey) {
        let traced = Traced { session: session.clone(), seat: None, arrived: [None; REMEMBERED] };
        self.members.insert(member, traced);
    }

    /// A link has ended.
    pub fn ended(&mut self, member: Member) {
        self.members.remove(&member);
    }

    /// A message has arrived.
    pub fn received(&mut self, now: Time, relay: &Relay, member: Member, channel: Channel, bytes: &[u8]) {
        let Some((traced, near)) = look(&mut self.members, relay, member) else { return };
        if channel == Channel::Input {
            // Invalid bytes are handled by the relay.
            let _ = read_inputs(bytes, near, |tick, _| {
                let place = &mut traced.arrived[tick.0 as usize % REMEMBERED];
                if place.is_none_or(|(before, _)| before != tick) {
                    *place = Some((tick, now));
                }
            });
        }
        let logged = Logged { at: now, sent: false, channel, seat: traced.seat, near };
        self.trace.message(&traced.session.name, &logged, bytes);
    }

    /// A message is sent.
    pub fn sent(&mut self, now: Time, relay: &Relay, member: Member, channel: Channel, bytes: &[u8]) {
        let Some((traced, near)) = look(&mut self.members, relay, member) else { return };
        let logged = Logged { at: now, sent: true, channel, seat: traced.seat, near };
        self.trace.message(&traced.session.name, &logged, bytes);
    }

    /// A tick was closed.
    pub fn closed(&mut self, now: Time, session: &Session, tick: Tick) {
        let Some(rows) = session.rows(tick) else { return };
        let mut line = ClosedLine {
            unix_us: unix_us(),
            session: &session.facts().name,
            kind: "closed",
            tick: tick.0,
            ..ClosedLine::default()
        };
        for row in rows {
            if row.input.is_none() {
                line.omitted.push(row.seat.0);
                continue;
            }
            let player = session.participants().find(|participant| participant.seat == Some(row.seat));
            let traced = player.and_then(|player| self.members.get(&player.member));
            let arrived = traced.and_then(|traced| traced.arrived[tick.0 as usize % REMEMBERED]);
            let waited_us = arrived.filter(|(at, _)| *at == tick).map(|(_, at)| now.micros_since(at));
            line.present.push(Present { seat: row.seat.0, waited_us });
        }
        self.trace.write(&line);
    }
}

/// The seat of a member, and the last closed tick of its session.
fn look<'a>(
    members: &'a mut HashMap<Member, Traced>,
    relay: &Relay,
    member: Member,
) -> Option<(&'a mut Traced, Tick)> {
    let traced = members.get_mut(&member)?;
    let session = relay.find(&traced.session).and_then(|id| relay.session(id));
    if traced.seat.is_none() {
        let find =
            |session: &Session| session.participants().find(|participant| participant.member == member)?.seat;
        traced.seat = session.and_then(find);
    }
    let near = session.map_or(Tick::ZERO, |session| session.history().last());
    Some((traced, near))
}
