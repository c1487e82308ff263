//! Seats assigned by the driver of a host: examples, and many random runs.

use std::collections::BTreeMap;

use sametick_room::host::{CAME_BACK, Input, RETURN_US, SEAT_GIVEN};
use sametick_room::{Host, HostConfig};
use sametick_sim::record::{Leaving, Record, TickInputs};
use sametick_sim::{Game, Rng, Seat, Tick, Time};
use sametick_wire::Member;

use crate::field::{Field, Setup};
use crate::played::{Room, player};

const SEATS: u16 = 8;

fn config() -> HostConfig {
    HostConfig { seats: SEATS, ..HostConfig::default() }
}

fn room() -> Room {
    Room::new(Host::new(Time::ZERO, &Setup::default(), config()), Time::ZERO)
}

fn goings(room: &Room) -> Vec<String> {
    let line = |record: &Record| match record {
        Record::Joined { seat, name, .. } => Some(format!("{name} sits on {}", seat.0)),
        Record::Left { seat, why, .. } => Some(format!("{} is left: {why:?}", seat.0)),
        _ => None,
    };
    room.said.iter().filter_map(line).collect()
}

fn participants(room: &Room) -> Vec<(u64, Option<Seat>)> {
    room.host.participants().map(|who| (who.member.0, who.seat)).collect()
}

#[test]
fn a_player_gets_the_assigned_seat_or_spectates() {
    let mut room = room();
    room.come_as(1, (1, Some(5)), true);
    room.come_as(2, (2, None), true);
    room.come_as(3, (3, Some(SEATS)), true);
    room.run(2);
    assert_eq!(participants(&room), [(1, Some(Seat(5))), (2, None)]);
    assert_eq!(room.refused.len(), 1, "there is no such seat");
    // The same player over another link was never away; on another seat the player has changed seats.
    room.come_as(4, (1, Some(5)), true);
    room.run(2);
    room.lose(4);
    room.come_as(5, (1, Some(5)), true);
    room.run(2);
    assert_eq!(goings(&room), ["player 1 sits on 5"]);
    room.lose(5);
    room.run(10);
    room.come_as(6, (1, Some(2)), true);
    room.run(10);
    room.come_as(7, (1, Some(5)), true);
    room.run(2);
    assert_eq!(participants(&room), [(2, None), (7, Some(Seat(5)))]);
    assert_eq!(room.closed, [(1, CAME_BACK), (6, CAME_BACK)]);
    // A join over an earlier link is refused.
    room.come_as(3, (1, Some(5)), true);
    assert_eq!(room.refused.last(), Some(&(3, CAME_BACK.to_owned())));
}

#[test]
fn another_player_takes_a_seat_once_the_game_has_seen_it_left() {
    let mut room = room();
    room.come_as(1, (1, Some(5)), true);
    room.run(5);
    room.come_as(2, (2, Some(5)), true);
    assert_eq!((&room.closed[..], participants(&room).len()), (&[(1, SEAT_GIVEN)][..], 0));
    assert!(!room.host.is_empty(), "player 2 waits for the seat");
    room.run(1);
    assert_eq!(participants(&room), [(2, Some(Seat(5)))]);
    room.run(1);
    let [.., left, joined] = &room.ticks[..] else { panic!() };
    let row = |ticks: &TickInputs| ticks.get(Seat(5)).map(|row| (row.joined, row.left));
    assert_eq!((row(left), row(joined)), (Some((false, true)), Some((true, false))));
    assert_eq!(goings(&room), ["player 1 sits on 5", "5 is left: Kicked", "player 2 sits on 5"]);
}

#[test]
fn a_rejoin_within_a_tick_is_let_in_after_it() {
    let mut room = room();
    room.come_as(1, (1, Some(5)), true);
    room.lose(1);
    room.come_as(2, (1, Some(5)), true);
    room.run(2);
    assert_eq!(participants(&room), [(2, Some(Seat(5)))]);
    assert_eq!(goings(&room), ["player 1 sits on 5", "5 is left: TimedOut", "player 1 sits on 5"]);
}

#[test]
fn after_a_restart_an_absent_seat_goes_to_its_assigned_player() {
    let mut first = room();
    first.come_as(1, (1, Some(5)), true);
    first.come_as(2, (2, Some(6)), true);
    first.come_as(3, (3, Some(7)), true);
    first.run(30);
    let (tick, state) = (first.host.tick(), first.host.state().clone());
    let taken: Vec<Seat> = first.host.taken().collect();
    let mut second = Room::new(Host::resume(Time::ZERO, config(), (tick, state), &taken), Time::ZERO);
    second.come_as(11, (1, Some(5)), true);
    second.run(1);
    second.come_as(12, (2, Some(6)), true);
    second.run(1);
    assert_eq!(participants(&second), [(11, Some(Seat(5))), (12, Some(Seat(6)))]);
    assert_eq!(goings(&second), [""; 0], "nobody has left");
    let return_ticks = (RETURN_US / Field::RATE.tick_micros()) as u32;
    second.run(return_ticks + 1);
    second.come_as(13, (3, Some(7)), true);
    second.run(1);
    assert_eq!(goings(&second), ["7 is left: TimedOut", "player 3 sits on 7"]);
    assert!(second.closed.is_empty(), "{:?}", second.closed);
}

/// As for relays: every player sits on the last assigned seat, over one link, and the game sees seats taken and left in
/// turn.
#[test]
fn every_player_sits_on_the_last_assigned_seat() {
    for seed in 0..200 {
        let mut rng = Rng::new(seed);
        let mut room = room();
        let mut links: BTreeMap<u8, (u64, Option<u16>)> = BTreeMap::new();
        for link in 1..200 {
            let number = 1 + rng.below(5) as u8;
            match rng.below(10) {
                0..=4 => {
                    let is_free =
                        |seat: &u16| !links.iter().any(|(who, it)| *who != number && it.1 == Some(*seat));
                    let free: Vec<u16> = (0..SEATS).filter(is_free).collect();
                    let seat = rng.pick(&free).copied().filter(|_| rng.chance(5, 6));
                    room.come_as(link, (number, seat), true);
                    links.insert(number, (link, seat));
                }
                5 => links.remove(&number).into_iter().for_each(|(link, _)| room.lose(link)),
                6 => {
                    if let Some((link, _)) = links.remove(&number) {
                        room.host.handle(room.now, Input::Kick(Member(link), "out"));
                    }
                }
                _ => room.run(rng.below(4) as u32),
            }
        }
        room.run(2);
        let mut expected: Vec<_> = links.values().map(|(link, seat)| (*link, seat.map(Seat))).collect();
        expected.sort_unstable();
        assert_eq!(participants(&room), expected, "seed {seed}");
        let players = room.host.participants().filter_map(|who| who.player);
        assert!(players.eq(links_by_link(&links).into_iter().map(player)), "seed {seed}");
        assert_eq!(room.refused.len(), 0, "seed {seed}");
        let mut taken = [false; SEATS as usize];
        for (number, rows) in (1..).map(Tick).zip(&room.ticks) {
            assert_eq!(rows.tick(), number);
            for row in rows.iter() {
                let taken = &mut taken[row.seat.index()];
                assert!(row.joined != *taken, "seed {seed}");
                *taken = !row.left;
            }
        }
        let is_taken = |seat: usize| links.values().any(|(_, it)| *it == Some(seat as u16));
        assert_eq!(taken, std::array::from_fn(is_taken), "seed {seed}");
        let left = |record: &&Record| matches!(record, Record::Left { why: Leaving::Kicked, .. });
        assert!(seed != 0 || room.said.iter().filter(left).count() > 0);
    }
}

fn links_by_link(links: &BTreeMap<u8, (u64, Option<u16>)>) -> Vec<u8> {
    let mut by_link: Vec<(u64, u8)> = links.iter().map(|(number, (link, _))| (*link, *number)).collect();
    by_link.sort_unstable();
    by_link.into_iter().map(|(_, number)| number).collect()
}
