//! Tests that returning players resume their seat and character: after a drop, after a restart, and with another
//! character. In virtual time, on a real database.

use sametick::games;
use sametick::rooms::{GRACE_US, Input as RoomInput, Keeping};
use sametick_arena::kept::Life;
use sametick_arena::{Action, Arena, Input, Kind, Own, Setup, Structure, Tile, autopilot};
use sametick_room::view::{JoinAs, Status};
use sametick_sim::replica::Scene;
use sametick_sim::{Seat, Tick};
use sametick_store::players::{Purpose, Question, Sqlite, SqliteOptions, Storage, Token, TokenState};
use sametick_wire::Member;

use crate::hall::Hall;
use crate::process::Folder;
use crate::trial::{Field, Step, Walker};

const SETUP: Setup = Setup { seed: 7, size: 32, bots: 0, seats: 2, points: 0, rocks: true, rounds: false };

const KEEPING: Keeping =
    Keeping { epoch_unix_ms: 1_800_000_000_000, token_s: 3_600, is_strict: false, hold_us: 60_000_000 };

/// Walks to the right for a while, then builds and stands.
fn settle_down(own: Option<&Own>, around: &Scene, tick: Tick) -> Input {
    let Some(own) = own else { return Input::default() };
    let [x, y] = own.at.map(|part| part / 256);
    let around_me = [(2, 0), (-2, 0), (0, 2), (0, -2), (2, 2), (-2, -2), (2, -2), (-2, 2)];
    let tiles = around_me.into_iter().filter_map(|(dx, dy)| Tile::new(x + dx, y + dy));
    let free =
        tiles.into_iter().find(|tile| sametick_arena::build::could_place(own, *tile, Kind::Wall, around));
    let wants = tick.0.is_multiple_of(20) && own.built < 2;
    let action = free.filter(|_| wants).map(|tile| Action::Place(tile, Kind::Wall));
    Input { aim: 77, action, ..Input::default() }
}

struct House {
    folder: Folder,
}

impl House {
    fn new() -> House {
        House { folder: Folder::new() }
    }

    fn storage(&self) -> Sqlite {
        let path = self.folder.path().join("players.sqlite");
        Sqlite::open(&path, &SqliteOptions::default(), Purpose::Writing).unwrap().0
    }

    /// A server that starts so long after the epoch.
    fn start(&self, after_s: u64, keeping: Keeping) -> Hall<Arena> {
        let games = games![Arena[1..=16] => autopilot; rooms[1..=8]];
        let keeping = Keeping { epoch_unix_ms: keeping.epoch_unix_ms + after_s * 1_000, ..keeping };
        Hall::keeping(games, settle_down, keeping, self.storage())
    }

    fn state_of(&self, token: Token) -> TokenState {
        let (game, code) = ("arena".into(), "den".into());
        let now_unix_s = KEEPING.epoch_unix_ms / 1_000;
        let question = Question { token: Some(token.hash()), game, code, now_unix_s, ..Question::default() };
        self.storage().look_up(&question).unwrap().token
    }
}

fn named(name: &str) -> JoinAs<Arena> {
    JoinAs { setup: SETUP, seed: SETUP.seed, seats: SETUP.seats, ..crate::rooms::named(name) }
}

fn own(hall: &Hall<Arena>, member: Member) -> Own {
    hall.players[&member].view.newest_own().unwrap()
}

fn token(hall: &Hall<Arena>, member: Member) -> Token {
    hall.players[&member].view.token().expect("a token is given once it is on disk")
}

fn walls(hall: &Hall<Arena>, member: Member) -> Vec<Structure> {
    let newest = hall.players[&member].view.newest();
    newest
        .iter::<Structure>()
        .map(|(_, structure)| structure)
        .filter(|it| it.kind == Kind::Wall.code())
        .collect()
}

#[test]
fn a_disconnected_player_resumes_seat_and_state() {
    let house = House::new();
    let mut hall = house.start(0, KEEPING);
    let members = ["ada", "ben"].map(|name| hall.join("den", &named(name)));
    hall.run(6_000);
    let (before, key) = (own(&hall, members[1]), token(&hall, members[1]));
    assert_eq!((before.number, before.built), (1, 2));
    hall.lose(members[1]);
    hall.run(20_000);
    // No other player gets the seat meanwhile, though there is no free one.
    let other = hall.join("den", &named("cid"));
    assert_eq!(hall.status(other), Status::Refused("the room is full".into()));
    let back = hall.join_as("den", &named("ben"), key);
    hall.run(2_000);
    let after = own(&hall, back);
    assert_eq!((after.number, after.at, after.aim, after.built), (1, before.at, 77, 2));
    assert_eq!(walls(&hall, back).iter().filter(|wall| wall.owner == 1).count(), 2);
    // After the window the seat is free.
    hall.lose(back);
    hall.run(61_000);
    let other = hall.join("den", &named("cid"));
    hall.run(1_000);
    assert_eq!(hall.players[&other].view.seat(), Some(Seat(1)));
    let id = hall.rooms.find(&Hall::<Arena>::key("den")).unwrap();
    assert!(hall.replay(id, &SETUP) > 60, "what came from the database is in the log");
}

#[test]
fn a_killed_server_restores_its_room() {
    let house = House::new();
    let mut hall = house.start(0, KEEPING);
    let members = ["ada", "ben"].map(|name| hall.join("den", &named(name)));
    hall.run(6_500);
    let (before, key) =
        (members.map(|member| own(&hall, member)), members.map(|member| token(&hall, member)));
    let stood = walls(&hall, members[0]);
    assert_eq!(stood.len(), 4);
    drop(hall);
    // A few seconds later the second player returns first; the setup is another one, which does not count.
    let mut hall = house.start(10, KEEPING);
    let ben = hall.join_as("den", &JoinAs { setup: Setup { seed: 1, ..SETUP }, ..named("ben") }, key[1]);
    let cid = hall.join("den", &named("cid"));
    assert_eq!(hall.status(cid), Status::Refused("the room is full".into()), "ada's seat waits for her");
    let ada = hall.join_as("den", &named("ada"), key[0]);
    hall.run(2_000);
    for (member, before) in [(ada, before[0]), (ben, before[1])] {
        let after = own(&hall, member);
        assert_eq!((after.number, after.at, after.built), (before.number, before.at, 2));
    }
    let tiles = |walls: &[Structure]| walls.iter().map(|wall| (wall.tile, wall.owner)).collect::<Vec<_>>();
    assert_eq!(tiles(&walls(&hall, ada)), tiles(&stood));
    let id = hall.rooms.find(&Hall::<Arena>::key("den")).unwrap();
    assert!(hall.replay(id, &SETUP) > 0);
    drop(hall);
    // A day later no seat is reserved, and still every player is where they were.
    let keeping = Keeping { token_s: 10 * 86_400, ..KEEPING };
    let mut hall = house.start(3_000, keeping);
    let cid = hall.join("den", &named("cid"));
    hall.run(2_000);
    assert_eq!(hall.players[&cid].view.seat(), Some(Seat(0)));
    let stands = walls(&hall, cid);
    assert!(stood.iter().all(|wall| stands.iter().any(|other| other.tile == wall.tile)));
    let ben = hall.join_as("den", &named("ben"), key[1]);
    hall.run(2_000);
    assert_eq!(own(&hall, ben).at, before[1].at);
}

/// A game that stores nothing of its players.
#[test]
fn seats_are_reserved_after_a_kill_in_a_game_without_storage() {
    let house = House::new();
    let start = |after_s| {
        let keeping = Keeping { epoch_unix_ms: KEEPING.epoch_unix_ms + after_s * 1_000, ..KEEPING };
        let pilot = |_: Option<&Walker>, _: &Scene, _| Step::default();
        Hall::<Field>::keeping(games![Field; rooms[1..=8]], pilot, keeping, house.storage())
    };
    let join = |name: &str| {
        let JoinAs { name, commit, seed, watch, listed, .. } = crate::rooms::named(name);
        JoinAs::<Field> { name, commit, setup: (), seed, seats: 3, watch, listed }
    };
    let mut hall = start(0);
    let members = ["ada", "ben"].map(|name| hall.join("den", &join(name)));
    // Much longer than a seat is reserved: nothing stored about the players changes meanwhile.
    let played_s = 3 * KEEPING.hold_us / 1_000_000;
    hall.run(played_s * 1_000);
    let keys = members.map(|member| hall.players[&member].view.token().unwrap());
    drop(hall);
    let mut hall = start(played_s + 20);
    let cid = hall.join("den", &join("cid"));
    let [ada, ben] =
        [("ada", keys[0]), ("ben", keys[1])].map(|(name, key)| hall.join_as("den", &join(name), key));
    hall.run(1_000);
    let seats = [ada, ben, cid].map(|member| hall.players[&member].view.seat());
    assert_eq!(seats, [Some(Seat(0)), Some(Seat(1)), Some(Seat(2))]);
}

#[test]
fn a_token_is_good_until_the_next_one_has_arrived() {
    let house = House::new();
    let mut hall = house.start(0, KEEPING);
    let ada = hall.join("den", &named("ada"));
    hall.run(3_000);
    let first = token(&hall, ada);
    hall.lose(ada);
    let ada = hall.join_as("den", &named("ada"), first);
    hall.run(1_000);
    let second = token(&hall, ada);
    assert_ne!(first, second);
    // Disconnected before the server knew that the second token arrived: both are valid.
    hall.lose(ada);
    hall.run(GRACE_US / 1_000 + 1_000);
    assert_eq!((house.state_of(first), house.state_of(second)), (TokenState::Good, TokenState::Good));
    let ada = hall.join_as("den", &named("ada"), second);
    hall.run(GRACE_US / 1_000 - 1_000);
    assert_eq!(house.state_of(second), TokenState::Good, "for a moment");
    hall.run(3_000);
    assert_eq!(house.state_of(second), TokenState::Retired);
    let third = token(&hall, ada);
    // A player with a retired token gets an error, and is a new player.
    let thief = hall.join_as("den", &named("eve"), second);
    hall.run(2_000);
    let view = &hall.players[&thief].view;
    assert_eq!(view.bad_token(), Some("this token was used before, and another was given for it"));
    assert_eq!(view.seat(), Some(Seat(1)));
    assert_ne!(view.token(), Some(third));
    assert_eq!(hall.players[&ada].view.seat(), Some(Seat(0)));
    assert_eq!(hall.players[&ada].closed, None);
    // A kicked player cannot return with the token.
    hall.rooms.handle(hall.now, RoomInput::Kick(ada, "be nice"));
    hall.run(2_000);
    assert_eq!(house.state_of(third), TokenState::Retired);
}

#[test]
fn a_join_without_a_required_token_is_refused() {
    let house = House::new();
    let mut hall = house.start(0, Keeping { is_strict: true, ..KEEPING });
    let ada = hall.join("den", &named("ada"));
    hall.run(1_000);
    assert!(matches!(hall.status(ada), Status::Refused(why) if why.starts_with("sign in first")));
    let eve = hall.join_as("den", &named("eve"), Token::from_bytes([3; 16]));
    hall.run(1_000);
    assert!(matches!(hall.status(eve), Status::Refused(why) if why.starts_with("sign in first")));
    assert_eq!(hall.rooms.iter().count(), 0);
}

#[test]
fn a_player_cut_off_before_the_token_resumes_by_the_claim() {
    let house = House::new();
    let mut hall = house.start(0, KEEPING);
    let ada = hall.join("den", &named("ada"));
    let eve = hall.join("den", &named("eve"));
    hall.is_stuck = true;
    hall.run(4_000);
    let before = own(&hall, ada);
    let mut view = hall.lose(ada);
    hall.run(1_000);
    let back = hall.open("den");
    view.rejoin(hall.now, sametick_wire::pacer::Path::default());
    hall.seat(back, view);
    hall.is_stuck = false;
    hall.run(2_000);
    assert_eq!((own(&hall, back).number, own(&hall, back).at), (before.number, before.at));
    // A player with their own token and another player's claim keeps their own identity.
    let claim = hall.players[&back].view.claim().unwrap();
    let mut thief = hall.lose(eve);
    hall.run(1_000);
    let again = hall.open("den");
    thief.resume(hall.now, sametick_wire::pacer::Path::default(), claim);
    hall.seat(again, thief);
    hall.run(1_000);
    assert_eq!(hall.players[&again].view.seat(), Some(Seat(1)));
    assert_eq!(hall.players[&back].closed, None);
}

#[test]
fn two_joins_with_one_token_are_one_player() {
    let house = House::new();
    let mut hall = house.start(0, KEEPING);
    let ada = hall.join("den", &named("ada"));
    hall.run(3_000);
    let (key, before) = (token(&hall, ada), own(&hall, ada));
    let again = hall.join_as("den", &named("ada"), key);
    hall.run(2_000);
    assert_eq!(hall.players[&ada].closed, Some("you have come back over another connection"));
    assert_eq!((own(&hall, again).number, own(&hall, again).at), (before.number, before.at));
}

#[test]
fn a_character_keeps_its_life_and_the_choice_is_remembered() {
    let house = House::new();
    let mut hall = house.start(0, KEEPING);
    let ada = hall.join("den", &named("ada"));
    hall.run(4_000);
    let view = &mut hall.players.get_mut(&ada).unwrap().view;
    assert_eq!(view.characters().active, "scout");
    let (name, kept) = &view.characters().all[0];
    assert_eq!(
        (name.as_str(), Life::of_kept(kept).built),
        ("scout", 2),
        "what is shown is no older than what is kept"
    );
    view.choose_character("smith");
    hall.run(3_000);
    let characters = hall.players[&ada].view.characters().clone();
    assert_eq!(characters.active, "smith");
    let life = |name: &str| {
        let kept = characters.all.iter().find(|(known, _)| known == name).unwrap();
        Life::of_kept(&kept.1)
    };
    assert_eq!((life("scout").built, life("smith").built), (2, 0));
    let key = token(&hall, ada);
    hall.cut(ada);
    drop(hall);
    let mut hall = house.start(5, KEEPING);
    let ada = hall.join_as("attic", &named("ada"), key);
    hall.run(2_000);
    let characters = hall.players[&ada].view.characters();
    assert_eq!(characters.active, "smith");
    let scout = characters.all.iter().find(|(name, _)| name == "scout").unwrap();
    assert_eq!(Life::of_kept(&scout.1).built, 2, "in every room");
    // There is no such character: nothing happens.
    hall.players.get_mut(&ada).unwrap().view.choose_character("wizard");
    hall.run(1_000);
    assert_eq!(hall.players[&ada].view.characters().active, "smith");
}

#[test]
fn a_failing_database_delays_no_player() {
    let house = House::new();
    let mut hall = house.start(0, KEEPING);
    let ada = hall.join("den", &named("ada"));
    hall.run(2_000);
    hall.is_stuck = true;
    let ben = hall.join("den", &named("ben"));
    hall.run(10_000);
    assert_eq!(hall.players[&ben].view.token(), None, "what is not on disk is not given");
    let saved = hall.players[&ada].view.saved().unwrap();
    assert!(saved <= Tick(60) && hall.players[&ben].view.stats().updates > 90);
    hall.is_stuck = false;
    hall.run(2_000);
    assert!(hall.players[&ben].view.token().is_some());
    assert!(hall.players[&ada].view.saved().unwrap() > Tick(60));
}
