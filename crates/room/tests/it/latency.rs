//! How others are shown while the network's latency changes.

use std::collections::BTreeMap;

use sametick_room::pair::{Player, Trial, Watch};
use sametick_room::{Host, HostConfig};
use sametick_sim::replica::Hosted;
use sametick_sim::{Game, Time};

use crate::field::{self, Field};
use crate::swarm::{self, Body, Swarm};

/// The result of one look.
struct Look {
    now: Time,
    shown_us: i64,
    frozen_us: u64,
}

/// The history of a player's looks.
#[derive(Default)]
struct Seen {
    last: Option<Look>,
    passed_us: u64,
    frozen_us: u64,
    /// The least and the greatest speed of the shown moment in a look that was not frozen, in 1,000ths of real time.
    speeds: Option<[i64; 2]>,
    longest_delay_us: i64,
}

impl<G: Hosted> Watch<G> for Seen {
    fn looked(&mut self, player: &mut Player<G>, _: usize) {
        let (now, stats) = (player.pair.now(), player.view.stats());
        let shown_us = G::RATE.due_micros(player.view.newest_tick()) as i64 - stats.buffer_us;
        let look = Look { now, shown_us, frozen_us: stats.frozen_us };
        let Some(before) = self.last.replace(look) else { return };
        let passed_us = now.micros_since(before.now);
        let frozen_us = stats.frozen_us - before.frozen_us;
        self.passed_us += passed_us;
        self.frozen_us += frozen_us;
        self.longest_delay_us = self.longest_delay_us.max(stats.delay_us);
        if frozen_us == 0 {
            let speed = (shown_us - before.shown_us) * 1_000 / passed_us as i64;
            let [least, most] = self.speeds.get_or_insert([speed; 2]);
            (*least, *most) = (speed.min(*least), speed.max(*most));
        }
    }
}

/// Where bodies are shown, and their speed there.
#[derive(Default)]
struct Bodies {
    /// The distance in codes per tick of bodies that are far from any wall.
    paces: BTreeMap<u32, i32>,
    last: Option<(Time, u64, BTreeMap<u32, i32>)>,
    looked: u32,
}

impl Watch<Swarm> for Bodies {
    fn stepped(&mut self, host: &Host<Swarm>) {
        let paces = host.state().bodies().map(|(id, _)| (id, host.state().pace(id).unwrap()));
        self.paces = paces
            .filter(|(_, (pace, is_free))| *is_free && pace.abs() >= 20)
            .map(|(id, (pace, _))| (id, pace))
            .collect();
    }

    fn looked(&mut self, player: &mut Player<Swarm>, _: usize) {
        let (now, frozen_us) = (player.pair.now(), player.view.stats().frozen_us);
        let shown = player.view.shown::<Body>().map(|(id, _, body)| (id, body.at[0])).collect();
        let Some((before, was_frozen_us, places)) = self.last.replace((now, frozen_us, shown)) else {
            return;
        };
        let ticks = now.micros_since(before) as f64 / Swarm::RATE.tick_micros() as f64;
        if was_frozen_us != frozen_us {
            return;
        }
        for (id, at) in &self.last.as_ref().unwrap().2 {
            let (Some(pace), Some(from)) = (self.paces.get(id), places.get(id)) else { continue };
            let (moved, right) = (f64::from((at - from) * pace.signum()), f64::from(pace.abs()) * ticks);
            // Positions are whole numbers.
            let is_even = (0.85 * right - 1.0..=1.15 * right + 1.0).contains(&moved);
            assert!(is_even, "body {id} moves {moved}, not {right:.1}, at {now:?}");
            self.looked += 1;
        }
    }
}

/// A lost update is not visible: bodies move on smoothly.
#[test]
fn bodies_are_shown_at_the_speed_they_have() {
    let setup = swarm::Setup { seed: 3, bodies: 40, ..swarm::Setup::default() };
    let profile = "rtt=100ms,jitter=20ms,loss=5%".parse().unwrap();
    let mut trial: Trial<Swarm> = Trial::new(3, profile, &setup, HostConfig::default());
    trial.join(&setup, |_, _| ());
    let mut bodies = Bodies::default();
    trial.run_millis(3_000, &mut ());
    trial.run_millis(20_000, &mut bodies);
    assert!(bodies.looked > 5_000, "{}", bodies.looked);
}

/// The one-way latency of every step, in milliseconds.
const STEPS: [u64; 4] = [0, 100, 250, 50];

fn run<G: Hosted>(setup: &G::Setup, input: G::Input)
where
    G::Input: Copy + 'static,
{
    let mut steps: [Seen; 4] = Default::default();
    for seed in 0..8 {
        let mut trial: Trial<G> = Trial::new(seed, "rtt=0ms".parse().unwrap(), setup, HostConfig::default());
        trial.join(setup, move |_, _| input);
        for (step, one_way_ms) in steps.iter_mut().zip(STEPS) {
            let line = format!("rtt={}ms,jitter=20ms,loss=5%", 2 * one_way_ms);
            trial.set_profile(line.parse().unwrap());
            trial.run_millis(2_000, &mut ());
            step.last = None;
            trial.run_millis(18_000, step);
        }
    }
    for (step, one_way_ms) in steps.iter().zip(STEPS) {
        let frozen = 100.0 * step.frozen_us as f64 / step.passed_us as f64;
        let ([least, most], delay_ms) = (step.speeds.unwrap(), step.longest_delay_us / 1_000);
        println!(
            "{} at {one_way_ms} ms: frozen {frozen:.2} %, speed {least} to {most} of 1,000, delay at most {delay_ms} ms",
            G::NAME
        );
        assert!(frozen < 1.0, "at {one_way_ms} ms: {frozen:.2} %");
        assert!(least >= 850 && most <= 1_150, "at {one_way_ms} ms: {least} to {most} of 1,000");
    }
}

#[test]
fn others_go_on_smoothly_while_the_latency_changes() {
    run::<Field>(&field::Setup { drifters: 10, ..field::Setup::default() }, field::Step::default());
    run::<Swarm>(&swarm::Setup { bodies: 10, ..swarm::Setup::default() }, ());
}
