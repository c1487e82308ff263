//! Rooms that end at any moment and begin again from their saved data, on bad networks: players return to their places,
//! built parts are still there, and every log replays.

use std::collections::BTreeMap;

use sametick_arena::{Arena, Setup};
use sametick_room::HostConfig;
use sametick_room::host::{Input, Keepable, KnownPlayer};
use sametick_room::pair::Trial;
use sametick_sim::replica::{Hosted, Parts, put_part};
use sametick_sim::{Owner, Rng, Seat, to_canonical};
use sametick_wire::identity::PlayerId;

use crate::rooms::{SETUP, bot, seeds};

const PLAYERS: u64 = 4;

/// The rows that a database would have.
#[derive(Default)]
struct Kept {
    players: BTreeMap<PlayerId, (Seat, Vec<u8>)>,
    lives: BTreeMap<PlayerId, Vec<u8>>,
    parts: BTreeMap<u32, Vec<u8>>,
}

impl Kept {
    fn take(&mut self, keepsakes: Vec<(Keepable, Vec<u8>)>) {
        for (what, bytes) in keepsakes {
            match what {
                Keepable::Player { player, seat, .. } => drop(self.players.insert(player, (seat, bytes))),
                Keepable::Character { player } => drop(self.lives.insert(player, bytes)),
                Keepable::Part(number) => drop(self.parts.insert(number, bytes)),
                Keepable::Gone(number) => drop(self.parts.remove(&number)),
            }
        }
    }

    fn introduce(&self, trial: &mut Trial<Arena>, index: usize, player: PlayerId) {
        let row = self.players.get(&player);
        let life = self.lives.get(&player).map(|life| to_canonical(&("guard", life)).unwrap());
        let known = KnownPlayer {
            player,
            seat: row.map(|(seat, _)| *seat),
            is_firm: false,
            kept: row.map_or(&[], |(_, kept)| kept),
            character: life.as_deref().unwrap_or(&[]),
        };
        trial.host.handle(trial.now, Input::KnownPlayer(trial.players[index].member, known));
    }
}

fn kept_of(arena: &Arena, seat: Seat) -> (Vec<u8>, Vec<u8>) {
    let (mut player, mut life) = (Vec::new(), Vec::new());
    arena.keep(seat, &mut player);
    arena.keep_character(seat, &mut life);
    (player, life)
}

fn parts_of(arena: &Arena) -> BTreeMap<u32, Vec<u8>> {
    let mut parts = Parts::default();
    arena.keep_parts(&mut parts);
    parts.iter().map(|(number, part)| (number, part.to_vec())).collect()
}

/// A room that begins from saved data, with all players who were in it.
fn begin(seed: u64, profile: &str, kept: &Kept) -> Trial<Arena> {
    let setup = Setup { seed, ..SETUP };
    let config = HostConfig { seats: 16, ..HostConfig::default() };
    let mut trial = Trial::new(seed, profile.parse().unwrap(), &setup, config);
    let mut chunk = Vec::new();
    kept.parts.iter().for_each(|(number, part)| put_part(&mut chunk, *number, part));
    if !chunk.is_empty() {
        trial.host.handle(trial.now, Input::Bring(Owner::Place, &chunk));
    }
    for number in 0..PLAYERS {
        let index = trial.join(&setup, bot(seed.wrapping_mul(100) + number));
        kept.introduce(&mut trial, index, PlayerId(number.into()));
    }
    trial
}

fn run(seed: u64) -> u64 {
    let mut rng = Rng::new(seed);
    let mut kept = Kept::default();
    let mut compared = 0;
    for life in 0..3 {
        let (loss, rtt) = (rng.below(31), rng.below(200));
        let mut trial = begin(seed, &format!("rtt={rtt}ms,loss={loss}%,dup=20%,reorder=20%"), &kept);
        for _ in 0..6 {
            trial.run_millis(200 + rng.below(1_500), &mut ());
            let index = rng.below(PLAYERS) as usize;
            match rng.below(3) {
                0 if !trial.players[index].gone => trial.leave(index, rng.chance(1, 2)),
                1 => {
                    kept.take(std::mem::take(&mut trial.keepsakes));
                    trial.rejoin(index);
                    kept.introduce(&mut trial, index, PlayerId(index as u128));
                }
                _ => {}
            }
        }
        // At the end of a second the saved data is equal to the state.
        trial.set_profile("rtt=20ms".parse().unwrap());
        while trial.host.tick().0 == 0 || !trial.host.tick().0.is_multiple_of(30) {
            trial.run_millis(1, &mut ());
        }
        kept.take(std::mem::take(&mut trial.keepsakes));
        let arena = trial.host.state();
        assert_eq!(kept.parts, parts_of(arena), "seed {seed}, life {life}");
        for who in trial.host.participants() {
            let (Some(seat), Some(player)) = (who.seat, who.player) else { continue };
            let (now, life) = kept_of(arena, seat);
            assert_eq!(
                (&kept.players[&player].1, &kept.lives[&player]),
                (&now, &life),
                "seed {seed}, {player}"
            );
            compared += 1;
        }
        assert!(trial.replay() > 0);
    }
    compared
}

#[test]
fn restarted_rooms_are_as_they_were() {
    let compared: u64 = (0..seeds().div_ceil(3)).map(run).sum();
    assert!(compared > 100, "{compared}");
}

/// Without a network in between: restored data is equal to the saved data, to the byte.
#[test]
fn restored_data_is_equal_to_saved_data() {
    for seed in 0..20 {
        let mut kept = Kept::default();
        let mut trial = begin(seed, "rtt=1ms", &kept);
        trial.run_millis(15_000, &mut ());
        while !trial.host.tick().0.is_multiple_of(30) {
            trial.run_millis(1, &mut ());
        }
        kept.take(std::mem::take(&mut trial.keepsakes));
        let (setup, config) = (Setup { seed, ..SETUP }, HostConfig { seats: 16, ..HostConfig::default() });
        let mut again = Trial::<Arena>::new(seed, "rtt=1ms".parse().unwrap(), &setup, config);
        let mut chunk = Vec::new();
        kept.parts.iter().for_each(|(number, part)| put_part(&mut chunk, *number, part));
        again.host.handle(again.now, Input::Bring(Owner::Place, &chunk));
        // Players have no input in their first tick.
        for number in 0..PLAYERS {
            let index = again.join(&setup, |_, _| sametick_arena::Input::default());
            kept.introduce(&mut again, index, PlayerId(number.into()));
        }
        let mut compared = 0;
        for _ in 0..400 {
            again.run_millis(1, &mut ());
            let arena = again.host.state();
            for who in again.host.participants() {
                let (Some(seat), Some(player)) = (who.seat, who.player) else { continue };
                let Some(person) = arena.at_seat(seat) else { continue };
                let (then, was) = (&kept.players[&player], trial.host.state());
                let before = was.at_seat(then.0).expect("they were there");
                assert_eq!((person.score, person.deaths), (before.score, before.deaths), "seed {seed}");
                assert_eq!(person.life, before.life, "seed {seed}");
                compared += 1;
            }
        }
        assert!(compared > 100);
        assert_eq!(parts_of(again.host.state()), kept.parts, "seed {seed}");
    }
}
