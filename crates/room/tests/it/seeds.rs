//! Random runs over many seeds, at fault rates of up to 30 % loss, 50 % duplication, reordering and 200 ms.

use std::collections::BTreeMap;

use sametick_room::HostConfig;
use sametick_room::pair::Player;
use sametick_room::view::Status;
use sametick_sim::Rng;
use sametick_sim::record::Record;
use sametick_sim::replica::Hosted;

use crate::field::{Drifter, FAR, Field, NEAR, SPEED, Setup, Stone, Walker};
use crate::world::{World, distance, truth};

/// The number of seeds of a normal test run; `cargo xtask long rooms` tries more.
const SEEDS: u64 = 300;

#[expect(clippy::disallowed_methods, reason = "the size of the test is set by an environment variable")]
fn seeds() -> u64 {
    std::env::var_os("SAMETICK_SEEDS").map_or(SEEDS, |seeds| seeds.to_str().unwrap().parse().unwrap())
}

fn bad(rng: &mut Rng) -> String {
    let (loss, dup, rtt, jitter) = (rng.below(31), rng.below(51), rng.below(200), rng.below(60));
    format!("rtt={rtt}ms,jitter={jitter}ms,loss={loss}%,dup={dup}%,reorder=20%")
}

/// Whether everything near is as it was at the tick of the newest update, everything far as it was shortly before, and
/// nothing is missing.
fn has_converged(world: &World, player: &Player<Field>) -> Result<(), String> {
    let view = &player.view;
    let id = view.view_id().ok_or("is not in")?;
    let then = world.checks.past.get(&view.newest_tick()).ok_or("has nothing")?;
    let eye = then.eye(id);
    let known: BTreeMap<u32, Walker> = view.newest().iter().collect();
    for (number, truth) in truth::<Walker>(then) {
        let away = distance(eye, truth.at);
        match known.get(&number) {
            Some(Walker { at, shouts, mood, .. })
                if away < NEAR && (*at, *shouts, *mood) != (truth.at, truth.shouts, truth.mood) =>
            {
                return Err(format!("walker {number} is at {at:?}, {shouts}, {mood}, not {truth:?}"));
            }
            None if away < FAR => return Err(format!("walker {number} is missing")),
            _ => {}
        }
    }
    let known: BTreeMap<u32, Drifter> = view.newest().iter().collect();
    for (number, truth) in truth::<Drifter>(then) {
        let away = distance(eye, truth.at);
        match known.get(&number) {
            Some(drifter) if away < NEAR && *drifter != truth => {
                return Err(format!("drifter {number} is {drifter:?}, not {truth:?}"));
            }
            Some(drifter) => {
                let lately = world.checks.past.range(..=view.newest_tick()).rev().take(18);
                let was = { lately }.any(|(_, state)| state.drifters[number as usize].at == drifter.at);
                if !was {
                    return Err(format!("drifter {number} was not at {:?} lately", drifter.at));
                }
            }
            None if away < FAR => return Err(format!("drifter {number} is missing")),
            None => {}
        }
    }
    let known: BTreeMap<u32, Stone> = view.newest().iter().collect();
    match then.stones.iter().find(|(number, at)| distance(eye, *at) < FAR && !known.contains_key(number)) {
        Some((number, _)) => Err(format!("stone {number} is missing")),
        None if view.newest_own() != then.own(id) => Err("its own state is another".into()),
        None => Ok(()),
    }
}

/// Injects all kinds of faults for a while, then none; afterwards every view has converged. Returns how many entities
/// in updates were checked.
fn run(seed: u64) -> u64 {
    let mut rng = Rng::new(seed);
    let setup =
        Setup { seed, stones: rng.below(120) as u32, drifters: 10 + rng.below(60) as u32, gusts: false };
    let budget_bytes = if rng.chance(1, 3) { 60 + rng.below(200) as usize } else { 900 };
    let config = HostConfig { seats: 6, budget_bytes, ..HostConfig::default() };
    let mut world = World::new(seed, &bad(&mut rng), &setup, config);
    for _ in 0..1 + rng.below(4) {
        world.join();
    }
    for _ in 0..4 {
        world.run_millis(300 + rng.below(1_200));
        let index = rng.below(world.players.len() as u64) as usize;
        match rng.below(6) {
            0 => {
                world.join();
            }
            1 if !world.players[index].gone => world.leave(index, true),
            2 if !world.players[index].gone => {
                world.leave(index, false);
                world.run_millis(rng.below(4_000));
                world.rejoin(index);
            }
            3 => {
                world.players[index].pair.set_down(true);
                world.run_millis(rng.below(5_000));
                world.players[index].pair.set_down(false);
            }
            _ => world.set_profile(&bad(&mut rng)),
        }
    }
    world.set_profile("rtt=40ms");
    world.stand_still();
    // With a small byte budget convergence takes a while.
    world.run_millis(if budget_bytes < 900 { 9_000 } else { 2_500 });
    let mut last = Ok(());
    for _ in 0..60 {
        let there = world.players.iter().filter(|player| !player.gone);
        last = there.clone().try_for_each(|player| match player.view.status() {
            Status::Refused(_) => Ok(()),
            _ => has_converged(&world, player).map_err(|why| format!("{:?} {why}", player.view.seat())),
        });
        if last.is_ok() || budget_bytes == 900 {
            break;
        }
        world.run_millis(100);
    }
    assert_eq!(last, Ok(()), "seed {seed}");
    world.checks.checked
}

#[test]
fn every_view_converges_and_sees_nothing_it_may_not() {
    // With seed 601 a field was never sent: an update that was planned twice counted twice.
    let checked: u64 = (0..seeds()).chain([601]).map(run).sum();
    assert!(checked > seeds() * 2_000, "{checked} entities were seen, too few to say anything");
}

#[test]
fn a_returning_player_gets_the_same_seat() {
    for seed in 0..40 {
        let setup = Setup { seed, stones: 10, drifters: 10, gusts: false };
        let mut world = World::new(seed, "rtt=100ms,loss=10%", &setup, HostConfig::default());
        (0..3).for_each(|_| {
            world.join();
        });
        world.run_millis(2_000);
        let seat = world.players[1].view.seat().unwrap();
        // Whether the host has noticed the disconnect or not.
        let is_noticed = seed % 2 == 0;
        let before = world.host.state().walker(seat.0).cloned().unwrap();
        world.leave(1, is_noticed);
        world.run_millis(700);
        world.rejoin(1);
        world.run_millis(1_500);
        assert_eq!(world.players[1].view.seat(), Some(seat), "seed {seed}");
        let after = world.host.state().walker(seat.0).unwrap();
        // A player whose absence went unnoticed is where it was, with all that it had.
        let near = (0..2).all(|axis| before.at[axis].abs_diff(after.at[axis]) < 100 * SPEED as u32);
        assert!(is_noticed || near && after.shouts >= before.shouts, "seed {seed}");
        let joined = world.records.iter().filter(|record| matches!(record, Record::Joined { .. })).count();
        assert_eq!(joined, 3 + usize::from(is_noticed), "seed {seed}");
    }
}
