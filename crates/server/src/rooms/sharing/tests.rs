//! Tests of many rooms from one address beside a room from another, in virtual time: the test sets the costs of steps,
//! and the thread is late accordingly.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::rc::Rc;

use sametick_arena::{Arena, Setup, autopilot};
use sametick_lockstep::relay::SessionKey;
use sametick_room::message::{Join, ToHost, ToView};
use sametick_sim::record::Leaving;
use sametick_sim::{Game, Time, to_canonical};
use sametick_wire::{Channel, Member, control};

use super::{BOTS_PER_ADDRESS, ROOMS_PER_ADDRESS, TOO_MANY_BOTS, TOO_MANY_ROOMS, TOO_SLOW};
use crate::games;
use crate::rooms::{Input, MAX_ROOMS, Output, RoomId, Rooms};

const HOST: [u8; 4] = [127, 0, 0, 2];
const STRANGER: [u8; 4] = [192, 0, 2, 1];
const NEIGHBOUR: [u8; 4] = [192, 0, 2, 2];

struct Server {
    rooms: Rooms,
    now: Time,
    at: Option<Time>,
    /// The cost of all steps so far, and of one step.
    spent_us: Rc<Cell<u64>>,
    cost_us: u64,
    steps: BTreeMap<RoomId, u64>,
    refused: Option<String>,
    paces: BTreeMap<Member, u8>,
    next: u64,
    longest_us: u64,
}

impl Server {
    fn new(cost_us: u64) -> Server {
        let mut rooms = Rooms::new(games![Arena[1..=16] => autopilot; rooms[1..=8]]);
        let spent_us = Rc::new(Cell::new(0));
        let clock = Rc::clone(&spent_us);
        rooms.set_clock(move || clock.get());
        Server {
            rooms,
            now: Time::from_micros(1),
            at: None,
            spent_us,
            cost_us,
            steps: BTreeMap::new(),
            refused: None,
            paces: BTreeMap::new(),
            next: 0,
            longest_us: 0,
        }
    }

    /// Begins a room. Returns the member, or the refusal.
    fn begin(&mut self, from: [u8; 4], bots: u8) -> Result<Member, String> {
        let member = Member(self.next);
        self.next += 1;
        self.rooms.enter(member, SessionKey { build: Arena::BUILD, name: format!("room {}", member.0) });
        self.rooms.come_from(member, IpAddr::from(from));
        let setup = Setup { seed: 7, bots, seats: 1, ..Setup::default() };
        let join = Join {
            game: Arena::NAME.into(),
            commit: String::new(),
            name: "me".into(),
            setup: to_canonical(&setup).unwrap(),
            seed: 7,
            seats: 1,
            watch: false,
            listed: true,
            resume: None,
            token: None,
            must_resume: false,
        };
        let bytes = control::to_bytes(&ToHost::Join(join));
        self.rooms.handle(self.now, Input::Message(member, Channel::Control, &bytes));
        self.drain();
        match self.refused.take() {
            None => Ok(member),
            Some(why) => {
                self.rooms.handle(self.now, Input::Closed(member, Leaving::Left));
                Err(why)
            }
        }
    }

    fn drain(&mut self) {
        let mut bytes = Vec::new();
        self.at = loop {
            match self.rooms.poll_output(&mut bytes) {
                Output::Stepped(id, _) => {
                    *self.steps.entry(id).or_default() += 1;
                    self.spent_us.set(self.spent_us.get() + self.cost_us);
                }
                Output::Send(member, Channel::Control) => match control::from_bytes(&bytes) {
                    Ok(ToView::Refused { why, .. }) => self.refused = Some(why),
                    Ok(ToView::Pace(percent)) => drop(self.paces.insert(member, percent)),
                    _ => {}
                },
                Output::WakeAt(at) => break Some(at),
                Output::Wait => break None,
                _ => {}
            }
        };
    }

    fn run(&mut self, seconds: u64) {
        let end = self.now.plus_micros(seconds * 1_000_000);
        while let Some(at) = self.at.filter(|at| *at <= end && self.now <= end) {
            self.now = self.now.max(at);
            let before_us = self.spent_us.get();
            self.rooms.handle(self.now, Input::Timeout);
            self.drain();
            let held_us = self.spent_us.get() - before_us;
            self.longest_us = self.longest_us.max(held_us);
            self.now = self.now.plus_micros(held_us);
        }
        self.now = self.now.max(end);
    }
}

#[test]
fn a_crowd_of_rooms_slows_itself_and_no_neighbour() {
    const SECONDS: u64 = 10;
    const CROWD: usize = MAX_ROOMS - 3;
    let usual = u64::from(Arena::RATE.per_second()) * SECONDS;
    // The cost measured in practice, and ten times that.
    for cost_us in [1_000, 10_000] {
        let mut server = Server::new(cost_us);
        let neighbour = server.begin(NEIGHBOUR, 0).unwrap();
        let crowd: Vec<Member> = (0..CROWD).map(|_| server.begin(HOST, 0).unwrap()).collect();
        server.run(1);
        let (id, room) = server.rooms.room_of(neighbour).unwrap();
        let lost_before_us = room.stats().lost_us;
        server.steps.clear();
        (server.longest_us, server.cost_us) = (0, cost_us);
        let spent_us = server.spent_us.get();
        server.run(SECONDS);
        let steps = server.steps.remove(&id).unwrap();
        assert!(steps + 3 >= usual, "{steps} of {usual} ticks");
        let lost_us = server.rooms.room(id).unwrap().stats().lost_us - lost_before_us;
        assert_eq!(lost_us, 0, "of the neighbour's time");
        let used = (server.spent_us.get() - spent_us) * 100 / (SECONDS * 1_000_000);
        assert!((50..=85).contains(&used), "{used} % of the thread");
        // The relay waits at most this long: a slice for slowed rooms, the tick that ends it, and a neighbour's tick.
        assert!(server.longest_us <= 6_000 + 2 * cost_us, "{} us at once", server.longest_us);
        assert!(server.steps.len() > 200, "of the crowd {} rooms run", server.steps.len());
        let told = crowd.iter().filter(|member| server.paces.get(member).is_some_and(|pace| *pace < 60));
        assert!(told.count() > 200 && !server.paces.contains_key(&neighbour), "who is slowed is told");
        assert_eq!(server.begin(HOST, 0), Err(TOO_SLOW.to_owned()));
        server.begin(NEIGHBOUR, 0).unwrap_or_else(|why| panic!("{why}"));
        let longest_us = server.longest_us;
        println!(
            "{cost_us} us a tick: {steps} of {usual}, {lost_us} us lost, {used} %, {longest_us} us at once"
        );
    }
}

#[test]
fn rooms_per_address_are_limited() {
    let mut server = Server::new(0);
    for _ in 0..ROOMS_PER_ADDRESS {
        server.begin(STRANGER, 0).unwrap();
    }
    for _ in 0..2_560 {
        assert_eq!(server.begin(STRANGER, 0), Err(TOO_MANY_ROOMS.to_owned()));
    }
    server.begin(NEIGHBOUR, 0).unwrap();
    assert_eq!(server.rooms.iter().count(), ROOMS_PER_ADDRESS + 1);
    for _ in 0..2 * ROOMS_PER_ADDRESS {
        server.begin(HOST, 0).unwrap_or_else(|why| panic!("this machine itself: {why}"));
    }
    // Ended rooms do not count.
    (0..ROOMS_PER_ADDRESS as u64)
        .for_each(|member| server.rooms.handle(server.now, Input::Closed(Member(member), Leaving::Left)));
    server.drain();
    server.run(11);
    server.begin(STRANGER, 0).unwrap();
}

#[test]
fn bots_per_address_are_limited() {
    let mut server = Server::new(0);
    server.begin(STRANGER, 200).unwrap();
    assert_eq!(server.begin(STRANGER, 100), Err(TOO_MANY_BOTS.to_owned()));
    server.begin(STRANGER, (BOTS_PER_ADDRESS - 200) as u8).unwrap();
    assert_eq!(server.begin(STRANGER, 1), Err(TOO_MANY_BOTS.to_owned()));
    server.begin(STRANGER, 0).unwrap();
    server.begin(NEIGHBOUR, 255).unwrap();
}
