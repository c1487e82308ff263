//! Tests of authoritative rooms: joins, refusals and logs. Most of them run in virtual time.

use sametick::games;
use sametick::games::Games;
use sametick::rooms::{FAILED, MAX_ROOMS, check_code};
use sametick_arena::{Arena, Input, Setup, autopilot, pilot};
use sametick_room::view::{JoinAs, Status};
use sametick_sim::record::Record;
use sametick_sim::replica::{Hosted, Scene, hosted_schema_of};
use sametick_sim::{BuildId, Game, Rng, Seat, Tick, schema_hash_of};
use sametick_wire::Channel;
use sametick_wire::hello::{Identity, Refusal};
use sametick_wire::pacer::Path;

use crate::hall::Hall;
use crate::trial::{Field, Step};

const SETUP: Setup = Setup { seed: 7, size: 32, bots: 2, seats: 4, points: 0, rocks: true, rounds: false };

fn known() -> Games {
    games![Arena[1..=16] => autopilot; rooms[1..=8]]
}

fn play(own: Option<&<Arena as Hosted>::Own>, around: &Scene, tick: Tick) -> Input {
    own.map(|own| pilot(own, around, tick, SETUP.seed)).unwrap_or_default()
}

fn hall() -> Hall<Arena> {
    Hall::new(known(), play)
}

pub fn named(name: &str) -> JoinAs<Arena> {
    JoinAs {
        name: name.into(),
        commit: "c0ffee".into(),
        setup: SETUP,
        seed: SETUP.seed,
        seats: SETUP.seats,
        watch: false,
        listed: true,
    }
}

#[test]
fn players_of_a_room_see_each_other_and_its_log_replays() {
    let mut hall = hall();
    let members = ["ada", "ben"].map(|name| hall.join("den", &named(name)));
    let local = hall.join_local("den", &named("cid"));
    let spectator = hall.join("den", &JoinAs { watch: true, ..named("dan") });
    hall.run(20_000);
    for member in members.into_iter().chain([local, spectator]) {
        let view = &hall.players[&member].view;
        let names: Vec<&str> = view.roster().iter().map(|seated| &seated.name[..]).collect();
        assert_eq!(names, ["ada", "ben", "cid"]);
        assert!(view.stats().updates > 150, "{:?}", view.stats());
    }
    assert_eq!(hall.players[&local].view.seat(), Some(Seat(2)));
    let id = hall.rooms.find(&Hall::<Arena>::key("den")).unwrap();
    let room = hall.rooms.room(id).unwrap();
    assert_eq!((room.tick(), room.facts().seats), (Tick(600), 4));
    assert_eq!(room.times().ticks, 600);
    assert_eq!(hall.replay(id, &SETUP), 20);
}

#[test]
fn rooms_of_different_codes_do_not_see_each_other() {
    let mut hall = hall();
    let [here, there] = ["one", "two"].map(|code| hall.join(code, &named(code)));
    hall.run(2_000);
    for (member, name) in [(here, "one"), (there, "two")] {
        let view = &hall.players[&member].view;
        assert_eq!((view.roster().len(), &view.roster()[0].name[..]), (1, name));
        assert_eq!(view.seat(), Some(Seat(0)));
    }
    assert_eq!(hall.rooms.iter().count(), 2);
}

#[test]
fn a_room_ends_when_it_was_empty_for_a_while() {
    let mut hall = hall();
    let ada = hall.join("den", &named("ada"));
    hall.run(1_000);
    let id = hall.rooms.find(&Hall::<Arena>::key("den")).unwrap();
    hall.cut(ada);
    hall.run(9_000);
    assert!(hall.rooms.room(id).is_some() && hall.ended.is_empty());
    // A player who returns in time keeps the room open.
    let ben = hall.join("den", &named("ben"));
    hall.run(20_000);
    assert_eq!(hall.rooms.room_of(ben).unwrap().0, id);
    hall.cut(ben);
    hall.run(11_000);
    assert_eq!(hall.ended, [id]);
    assert!(hall.rooms.room(id).is_none());
    let goings = |record: &&Record| matches!(record, Record::Joined { .. } | Record::Left { .. });
    assert_eq!(hall.logs[&id].iter().filter(goings).count(), 4);
    assert!(hall.replay(id, &SETUP) > 30);
    // The next room of that name is a new one.
    let cid = hall.join("den", &named("cid"));
    assert_ne!(hall.rooms.room_of(cid).unwrap().0, id);
    assert_eq!(hall.status(cid), Status::Waiting);
}

#[test]
fn another_build_or_schema_is_refused_with_the_difference() {
    let rooms = hall().rooms;
    let right = Identity { build: Arena::BUILD, schema: hosted_schema_of::<Arena>() };
    assert_eq!(rooms.admit(&right, "den"), Ok(()));
    let build = BuildId::from_bytes([9; 16]);
    let refused = rooms.admit(&Identity { build, ..right }, "den").unwrap_err();
    assert_eq!(refused, Refusal::Build { server: Arena::BUILD, client: build });
    let schema = schema_hash_of::<Arena>();
    let refused = rooms.admit(&Identity { schema, ..right }, "den").unwrap_err();
    assert_eq!(refused, Refusal::Schema { server: right.schema, client: schema });
    for bad in ["", "a\nb", &"x".repeat(65)] {
        assert!(check_code(bad).is_err() && rooms.admit(&right, bad).is_err(), "{bad:?}");
    }
    assert!(check_code(&"x".repeat(64)).is_ok() && check_code("Höhle 7").is_ok());
}

#[test]
fn a_full_room_refuses_and_a_retry_is_allowed() {
    let mut hall = hall();
    let members: Vec<_> = (0..4).map(|number| hall.join("den", &named(&number.to_string()))).collect();
    let late = hall.join("den", &named("late"));
    assert_eq!(hall.status(late), Status::Refused("the room is full".into()));
    hall.run(500);
    hall.cut(members[1]);
    hall.run(500);
    let view = hall.cut(late);
    assert!(matches!(view.status(), Status::Refused(_)));
    let again = hall.join("den", &named("late"));
    hall.run(500);
    assert_eq!(hall.players[&again].view.seat(), Some(Seat(1)));
}

#[test]
fn rooms_are_limited_and_an_invalid_setup_begins_none() {
    let mut hall = hall();
    for number in 0..MAX_ROOMS {
        let member = hall.join(&number.to_string(), &named("ada"));
        assert_eq!(hall.status(member), Status::Waiting);
    }
    let late = hall.join("one more", &named("ada"));
    assert_eq!(hall.status(late), Status::Refused("the server has no place for another room".into()));
    let mut hall = self::hall();
    let other = hall.open("den");
    let join = sametick_room::message::ToHost::Join(sametick_room::message::Join {
        game: "arena".into(),
        commit: String::new(),
        name: "eve".into(),
        setup: vec![1, 2, 3],
        seed: 0,
        seats: 4,
        watch: false,
        listed: true,
        resume: None,
        token: None,
        must_resume: false,
    });
    hall.say(other, Channel::Control, &sametick_wire::control::to_bytes(&join));
    assert_eq!(hall.rooms.iter().count(), 0);
}

#[test]
fn garbage_of_one_member_does_not_disturb_the_others() {
    let mut hall = hall();
    let ada = hall.join("den", &named("ada"));
    hall.run(1_000);
    let mut rng = Rng::new(11);
    for round in 0..300 {
        let eve = if round % 2 == 0 { hall.join("den", &named("eve")) } else { hall.open("den") };
        hall.run(rng.below(60));
        let len = rng.below(80) as usize;
        let bytes: Vec<u8> = (0..len).map(|_| rng.next_u64() as u8).collect();
        let channels =
            [Channel::Control, Channel::Input, Channel::State, Channel::Chunks, Channel::Diagnostics];
        hall.say(eve, channels[rng.below(5) as usize], &bytes);
        hall.run(rng.below(60));
        if hall.players.contains_key(&eve) {
            hall.cut(eve);
        }
    }
    hall.run(1_000);
    let (id, room) = hall.rooms.room_of(ada).unwrap();
    let updates = u64::from(room.tick().0) / 3;
    let view = &hall.players[&ada].view;
    assert_eq!(view.seat(), Some(Seat(0)));
    assert!(view.stats().updates + 5 > updates && view.stats().omissions < 5, "{:?}", view.stats());
    assert!(hall.replay(id, &SETUP) > 10);
}

#[test]
fn a_rejoin_over_another_link_has_the_same_seat() {
    let mut hall = hall();
    let [ada, _] = ["ada", "ben"].map(|name| hall.join("den", &named(name)));
    hall.run(2_000);
    // The old link still seems to be alive.
    let mut view = hall.players.remove(&ada).unwrap().view;
    let back = hall.open("den");
    view.rejoin(hall.now, Path::default());
    hall.seat(back, view);
    hall.run(1_000);
    assert_eq!(hall.players[&back].view.seat(), Some(Seat(0)));
    assert_eq!(hall.players[&back].view.roster().len(), 2);
    // And when the link is known to be gone.
    let mut view = hall.cut(back);
    hall.run(1_000);
    let again = hall.open("den");
    view.rejoin(hall.now, Path::default());
    hall.seat(again, view);
    hall.run(1_000);
    assert_eq!(hall.players[&again].view.seat(), Some(Seat(0)));
    let (id, _) = hall.rooms.room_of(again).unwrap();
    assert!(hall.replay(id, &SETUP) > 3);
}

#[test]
fn a_game_that_panics_takes_its_room_with_it_and_no_other() {
    let games = games![Field; rooms[1..=8]];
    let mut hall: Hall<Field> =
        Hall::new(games, |_, _, tick| Step { dx: 1, dy: 0, panic: tick == Tick(200) });
    let join = |name: &str| JoinAs::<Field> {
        name: name.into(),
        commit: String::new(),
        setup: (),
        seed: 0,
        seats: 2,
        watch: false,
        listed: true,
    };
    let (ada, ben) = (hall.join("one", &join("ada")), hall.join_local("one", &join("ben")));
    hall.run(4_000);
    let cid = hall.join("two", &join("cid"));
    let [one, two] = [ada, cid].map(|member| hall.rooms.room_of(member).unwrap().0);
    hall.run(4_000);
    assert_eq!((&hall.ended[..], &hall.crashed[..]), (&[one][..], &[one][..]));
    assert_eq!([ada, ben].map(|member| hall.players[&member].closed), [Some(FAILED); 2]);
    assert!(hall.players[&cid].closed.is_none() && hall.rooms.room(two).unwrap().tick() > Tick(100));
    // Everything before that tick is logged.
    let last = hall.logs[&one].iter().filter_map(Record::tick).max();
    assert!(last > Some(Tick(190)), "{last:?}");
    assert_eq!(hall.replay(one, &()), 6);
}
