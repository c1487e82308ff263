//! Tests of rooms with a driver and without sockets: assigned seats, ended rooms, and rooms resumed by the next
//! process.

use std::collections::BTreeMap;

use sametick_arena::{Arena, Setup, autopilot};
use sametick_lockstep::assignment::SeatAssignment;
use sametick_lockstep::relay::SessionKey;
use sametick_room::host::RETURN_US;
use sametick_room::message::{Join, ToHost, ToView};
use sametick_sim::contest::{Contest, Outcome, Wanted};
use sametick_sim::record::Leaving;
use sametick_sim::{Game, Seat, Time, from_canonical, to_canonical};
use sametick_store::saves::{Save, SaveInfo};
use sametick_wire::identity::PlayerId;
use sametick_wire::{Channel, Member, control};

use crate::finder::Sought;
use crate::games;
use crate::games::Games;
use crate::recovered::RecoveredSession;
use crate::rooms::reopening::{Past, table_of};
use crate::rooms::{Input, OpenRoom, Output, Rooms};

fn known() -> Games {
    games![Arena[1..=16] => autopilot; rooms[1..=8]; sessions]
}

fn key() -> SessionKey {
    SessionKey { build: Arena::BUILD, name: "den".into() }
}

fn assignment(player: u128, seat: Option<u16>) -> SeatAssignment {
    let setup = Setup { seed: 7, bots: 3, seats: 6, ..Setup::default() };
    SeatAssignment {
        player: PlayerId(player),
        name: format!("player {player}"),
        seat: seat.map(Seat),
        game: Arena::NAME.into(),
        rate: Arena::RATE,
        setup: to_canonical(&setup).unwrap(),
        seed: 7,
        seats: 6,
        listed: false,
    }
}

fn a_join() -> Join {
    Join {
        game: Arena::NAME.into(),
        commit: String::new(),
        name: "me".into(),
        setup: to_canonical(&Setup::default()).unwrap(),
        seed: 1,
        seats: 3,
        watch: false,
        listed: true,
        resume: None,
        token: None,
        must_resume: false,
    }
}

/// Rooms in one process, and their outputs.
struct House {
    rooms: Rooms,
    now: Time,
    at: Time,
    closed: Vec<(u64, &'static str)>,
    refused: Vec<u64>,
    /// The last save.
    saved: Option<Save>,
    ended: u32,
    outcomes: Vec<Outcome>,
    past: Option<Past>,
}

impl House {
    fn new(past: Option<Past>) -> House {
        let mut rooms = Rooms::new(known());
        rooms.set_finds();
        let (closed, refused, outcomes) = Default::default();
        House {
            rooms,
            now: Time::ZERO,
            at: Time::ZERO,
            closed,
            refused,
            saved: None,
            ended: 0,
            outcomes,
            past,
        }
    }

    fn come(&mut self, member: u64, assignment: Option<SeatAssignment>) {
        self.rooms.enter(Member(member), key());
        assignment.into_iter().for_each(|assignment| self.rooms.assign(Member(member), assignment));
        self.say(member, a_join());
    }

    fn say(&mut self, member: u64, join: Join) {
        let bytes = control::to_bytes(&ToHost::Join(join));
        self.rooms.handle(self.now, Input::Message(Member(member), Channel::Control, &bytes));
        self.hear();
    }

    fn hear(&mut self) {
        let mut bytes = Vec::new();
        loop {
            match self.rooms.poll_output(&mut bytes) {
                Output::Close(member, why) => self.closed.push((member.0, why)),
                Output::Find(key) => {
                    let past = self.past.take().unwrap_or(Past::None(5));
                    self.rooms.sought(self.now, &key, past);
                }
                Output::SaveRoom(id) => self.saved = self.rooms.room(id).map(save_of),
                Output::Ended(_) => self.ended += 1,
                Output::Outcome(_, outcome) => self.outcomes.push(outcome),
                Output::Send(member, Channel::Control) => {
                    let said = control::from_bytes(&bytes);
                    self.refused.extend(matches!(said, Ok(ToView::Refused { .. })).then_some(member.0));
                }
                Output::WakeAt(at) => return self.at = at,
                Output::Wait => return,
                _ => {}
            }
        }
    }

    fn run(&mut self, ms: u64) {
        let end = self.now.plus_micros(ms * 1_000);
        while self.at <= end && self.rooms.iter().count() > 0 {
            self.now = self.now.max(self.at);
            self.rooms.handle(self.now, Input::Timeout);
            self.hear();
        }
        self.now = end;
    }

    fn room(&self) -> &OpenRoom {
        self.rooms.iter().next().unwrap().1
    }

    fn arena(&self) -> Arena {
        from_canonical(&self.room().save().0).unwrap()
    }

    fn seats(&self) -> BTreeMap<u64, (String, Option<u16>)> {
        let there = self.room().participants();
        there.map(|who| (who.member.0, (who.name.to_owned(), who.seat.map(|seat| seat.0)))).collect()
    }
}

fn save_of(room: &OpenRoom) -> Save {
    let (state, hash, seats) = room.save();
    let facts = room.facts().clone();
    let info = SaveInfo {
        game: facts.game,
        session_id: String::new(),
        session: facts.name,
        build: facts.build,
        commit: facts.commit,
        schema: facts.schema,
        setup: facts.setup,
        seed: facts.seed,
        rate: facts.rate,
        seats: facts.seats,
        tick: room.tick(),
        hash,
        started_unix_ms: room.started_unix_ms(),
        saved_unix_ms: 0,
        listed: facts.listed,
    };
    Save { info, state, table: table_of(&seats) }
}

fn past_of(save: Save) -> Past {
    let recovered = RecoveredSession::new("den", None, Some(save)).unwrap();
    Past::of(Sought::Kept(Box::new(recovered)), "den", &known())
}

#[test]
fn a_client_that_must_resume_begins_no_room() {
    let mut house = House::new(None);
    house.rooms.enter(Member(1), key());
    let join = Join { must_resume: true, ..a_join() };
    house.say(1, join);
    assert_eq!((house.rooms.iter().count(), &house.refused[..]), (0, &[1][..]));
    house.come(2, None);
    house.say(1, Join { must_resume: true, ..a_join() });
    assert_eq!(house.refused, [1, 1], "nor is it let into one that is there");
    assert_eq!(house.room().participants().count(), 1);
}

#[test]
fn a_refused_join_names_the_broken_rule() {
    let mut house = House::new(None);
    for (member, join, rule) in [
        (1, Join { name: "x".repeat(65), ..a_join() }, "texts of at most 64"),
        (2, Join { name: "a\u{202e}b".into(), ..a_join() }, "no control or direction characters"),
    ] {
        house.rooms.enter(Member(member), key());
        house.say(member, join);
        let (closed, why) = house.closed.pop().unwrap();
        assert_eq!((closed, why.contains(rule)), (member, true), "{why}");
    }
}

#[test]
fn an_assigned_room_goes_on_until_it_is_ended() {
    let mut house = House::new(None);
    house.come(1, Some(assignment(1, Some(4))));
    house.come(2, Some(assignment(2, None)));
    house.run(1_000);
    let facts = house.room().facts();
    assert_eq!((facts.seed, facts.seats, facts.listed), (7, 6, false));
    let there = [(1, ("player 1".to_owned(), Some(4))), (2, ("player 2".to_owned(), None))];
    assert_eq!(house.seats(), there.into());
    // A member is kicked and another cut off: the room stays.
    house.rooms.handle(house.now, Input::Kick(Member(2), "out"));
    house.rooms.handle(house.now, Input::Closed(Member(1), Leaving::TimedOut));
    house.run(60_000);
    assert_eq!((&house.closed[..], house.ended), (&[(2, "out")][..], 0));
    house.come(3, Some(assignment(1, Some(4))));
    house.rooms.enter(Member(4), key());
    house.rooms.end(house.now, &key(), "enough");
    house.hear();
    assert_eq!(house.closed[1..], [(4, "enough"), (3, "enough")]);
    assert_eq!((house.rooms.iter().count(), house.ended), (0, 1));
    assert!(house.saved.is_some());
    // A room that was too short is not saved.
    let mut house = House::new(None);
    house.come(1, Some(assignment(1, Some(4))));
    house.run(1_000);
    house.rooms.end(house.now, &key(), "enough");
    house.hear();
    assert_eq!((house.ended, house.saved), (1, None));
}

#[test]
fn a_member_without_a_room_can_be_kicked() {
    let mut house = House::new(None);
    house.rooms.enter(Member(1), key());
    house.rooms.handle(house.now, Input::Kick(Member(1), "out"));
    house.hear();
    assert_eq!(house.closed, [(1, "out")]);
}

#[test]
fn an_assigned_room_is_resumed_with_all_its_players() {
    let mut house = House::new(None);
    house.come(1, Some(assignment(1, Some(4))));
    house.come(2, Some(assignment(2, Some(5))));
    house.run(20_000);
    let save = save_of(house.room());
    let before = house.arena();
    let mut next = House::new(Some(past_of(save)));
    next.come(11, Some(assignment(1, Some(4))));
    assert!(next.room().tick() > sametick_sim::Tick(500), "from where it was");
    next.run(1_000);
    assert!(next.arena().at_seat(Seat(5)).is_some(), "there is time to come back");
    // A player that does not return in time has left; its stored state is restored when it joins.
    next.run(RETURN_US / 1_000);
    assert!(next.arena().at_seat(Seat(5)).is_none());
    next.come(12, Some(assignment(2, Some(5))));
    next.run(100);
    let seats: Vec<_> = next.seats().into_values().map(|(_, seat)| seat).collect();
    assert_eq!(seats, [Some(4), Some(5)]);
    let at = |arena: &Arena, seat| arena.at_seat(Seat(seat)).map(|person| person.own.at);
    assert_eq!((at(&next.arena(), 4), at(&next.arena(), 5)), (at(&before, 4), at(&before, 5)));
    assert!(next.closed.is_empty() && next.refused.is_empty());
}

#[test]
fn a_room_of_guests_is_resumed() {
    let mut house = House::new(None);
    house.come(1, None);
    house.run(20_000);
    assert_eq!(house.seats(), [(1, ("me".to_owned(), Some(0)))].into());
    let mut next = House::new(Some(past_of(save_of(house.room()))));
    next.come(2, None);
    assert!(next.room().tick() > sametick_sim::Tick(500));
    // No other member keeps the room open.
    next.rooms.handle(next.now, Input::Closed(Member(2), Leaving::Left));
    next.run(11_000);
    assert_eq!(next.ended, 1);
}

#[test]
fn the_outcome_of_a_room_is_output_once() {
    let mut house = House::new(None);
    let wanted = Wanted { seed: 3, seats: 6, scenario: Some("skirmish"), difficulty: 11 };
    let setup = to_canonical(&Arena::setup(&wanted)).unwrap();
    house.come(1, Some(SeatAssignment { setup, ..assignment(1, Some(4)) }));
    house.run(1_000);
    assert!(house.outcomes.is_empty());
    // Bots fight until one of them wins.
    house.run(600_000);
    let [outcome] = &house.outcomes[..] else { panic!("{:?}", house.outcomes) };
    assert_eq!((outcome.scores.len(), outcome.scores[0].seat, outcome.scores[0].won), (1, Seat(4), false));
    let save = save_of(house.room());
    // The outcome is told again by the process that resumes the room, and never for rooms of guests.
    let mut next = House::new(Some(past_of(save.clone())));
    next.come(2, Some(assignment(1, Some(4))));
    next.run(1_000);
    assert_eq!(next.outcomes.len(), 1);
    let mut next = House::new(Some(past_of(save)));
    next.come(2, None);
    next.run(1_000);
    assert_eq!(next.outcomes.len(), 0);
}
