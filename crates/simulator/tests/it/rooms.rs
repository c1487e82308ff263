//! Arena in a room, on real-world network profiles.

use std::collections::BTreeMap;

use sametick_arena::{Arena, Avatar, Input, Setup, Structure, pilot};
use sametick_room::pair::{Player, Trial, Watch};
use sametick_room::view::View;
use sametick_room::{Host, HostConfig};
use sametick_sim::replica::{Entity, Hosted, Scene, ViewId};
use sametick_sim::{Rng, Tick};
use sametick_wire::Carrier;

/// The true positions, and the positions that each player was shown.
#[derive(Default)]
struct Shown {
    truth: BTreeMap<Tick, Arena>,
    own_compared: u64,
}

impl Watch<Arena> for Shown {
    fn stepped(&mut self, host: &Host<Arena>) {
        self.truth.insert(host.tick(), host.state().clone());
        self.truth.retain(|tick, _| host.tick().ticks_since(*tick) < 60);
    }

    fn updated(&mut self, players: &[Player<Arena>], index: usize) {
        let view = &players[index].view;
        let (Some(id), Some(state)) = (view.view_id(), self.truth.get(&view.newest_tick())) else { return };
        assert_eq!(view.newest_own(), state.own(id), "what is one's own arrives in full");
        self.own_compared += 1;
    }
}

/// A bot that knows only what its view shows.
pub fn bot(seed: u64) -> impl FnMut(&View<Arena>, Tick) -> Input {
    move |view, tick| {
        let own = view.predicted().map(|(_, own)| *own);
        own.map_or_else(Input::default, |own| pilot(&own, view.newest(), tick, seed))
    }
}

pub const SETUP: Setup =
    Setup { seed: 0, size: 24, bots: 0, seats: 16, points: 0, rocks: true, rounds: false };

fn arena(seed: u64, profile: &str, bots: u64) -> Trial<Arena> {
    let setup = Setup { seed, ..SETUP };
    let config = HostConfig { seats: 16, ..HostConfig::default() };
    let mut trial = Trial::new(seed, profile.parse().unwrap(), &setup, config);
    for number in 0..bots {
        trial.join(&setup, bot(seed.wrapping_mul(100) + number));
    }
    trial
}

/// V5: bots turn about every half second and collide; a round trip of 100 ms, one packet in fifty lost.
#[test]
fn prediction_is_wrong_by_less_than_thirty_milliseconds() {
    let (mut sum_ms, mut compared, mut worst, mut corrected) = (0.0, 0, 0.0f64, 0);
    for seed in 0..6 {
        let mut trial = arena(seed, "rtt=100ms,jitter=5ms,loss=2%", 14);
        let mut shown = Shown::default();
        trial.run_millis(30_000, &mut shown);
        for player in &trial.players {
            let errors = player.view.stats().errors;
            sum_ms += errors.sum_ms;
            compared += errors.compared;
            corrected += errors.corrections - errors.snaps;
            worst = sametick_sim::maths::max(worst, errors.mean_ms());
            assert!(player.view.stats().updates > 200);
        }
        assert!(shown.own_compared > 1_500);
    }
    let mean = sum_ms / compared as f64;
    println!(
        "reconciliation error: {mean:.2} ms on average over {compared} comparisons, {corrected} of them not zero; \
         the worst player's {worst:.2} ms"
    );
    assert!(compared > 5_000 && corrected > 300, "{compared}, {corrected}: nobody collided");
    assert!(mean <= 30.0, "{mean} ms");
    assert!(worst <= 60.0, "{worst} ms");
}

#[test]
fn an_arena_in_a_room_equals_one_without_for_the_same_inputs() {
    let mut trial = arena(9, "rtt=60ms,loss=3%", 5);
    trial.run_millis(20_000, &mut ());
    assert!(trial.replay() > 15);
}

/// How many seeds to try: as many as `cargo xtask long rooms` says, or a few.
#[expect(clippy::disallowed_methods, reason = "a test takes its size from the environment")]
pub fn seeds() -> u64 {
    std::env::var_os("SAMETICK_SEEDS").map_or(60, |seeds| seeds.to_str().unwrap().parse().unwrap())
}

/// On any network and with any joins and leaves: views show nothing wrong, converge in the end, and the log replays.
#[test]
fn every_room_converges_and_replays() {
    for seed in 0..seeds() {
        let mut rng = Rng::new(seed);
        let mut bad = || {
            let (loss, dup, rtt, jitter) = (rng.below(31), rng.below(51), rng.below(200), rng.below(50));
            format!("rtt={rtt}ms,jitter={jitter}ms,loss={loss}%,dup={dup}%,reorder=20%")
        };
        let (first, second) = (bad(), bad());
        let mut trial = arena(seed, &first, 2 + rng.below(5));
        let carriers = [Carrier::Datagrams, Carrier::DatagramsAndStreams, Carrier::Stream];
        trial.set_carrier(carriers[seed as usize % 3]);
        trial.set_extra_sockets(rng.below(5) as usize);
        let mut shown = Shown::default();
        trial.run_millis(2_000 + rng.below(2_000), &mut shown);
        trial.join(&Setup { seed, ..SETUP }, bot(seed));
        trial.leave(0, rng.chance(1, 2));
        trial.set_profile(second.parse().unwrap());
        trial.set_extra_sockets(rng.below(5) as usize);
        trial.run_millis(2_000 + rng.below(2_000), &mut shown);
        trial.rejoin(0);
        trial.set_profile("rtt=50ms".parse().unwrap());
        trial.run_millis(2_500, &mut shown);
        for player in &trial.players {
            let late = trial.host.tick().ticks_since(player.view.newest_tick());
            assert!(late < 10, "seed {seed}: nothing has come for {late} ticks");
            knows_all_structures(seed, &player.view, &shown.truth[&player.view.newest_tick()]);
        }
        assert!(trial.replay() >= 5);
    }
}

fn knows_all_structures(seed: u64, view: &View<Arena>, truth: &Arena) {
    let eye = truth.eye(view.view_id().unwrap()).unwrap();
    let mut scene = Scene::new(Arena::KINDS);
    truth.show(&mut scene);
    let kind = Arena::KINDS.iter().position(|kind| kind.name == Structure::KIND.name).unwrap();
    for row in scene.tables()[kind].rows() {
        let place = row.place.unwrap();
        let [x, y] = [0, 1].map(|axis: usize| place[axis] - eye[axis]);
        let away = (x * x + y * y).sqrt();
        if away <= Structure::KIND.zones.last().unwrap().within {
            let [told, there] = [view.newest(), &scene].map(|scene| scene.get::<Structure>(row.id));
            assert_eq!(told, there, "seed {seed}");
        }
    }
}

/// Deltas against full updates (V7): the cost of a view as it is, and with full updates each time.
#[test]
fn deltas_are_less_than_two_fifths_of_full_updates() {
    struct Whole(u64);
    impl Watch<Arena> for Whole {
        fn updated(&mut self, players: &[Player<Arena>], index: usize) {
            let scene = players[index].view.newest();
            // A number and a zone, and the codes in as many bits as their types have.
            let bytes = |(kind, table): (&sametick_sim::replica::Kind, &sametick_sim::replica::Table)| {
                let codes: usize = kind.fields.iter().map(|field| usize::from(field.slots) * 2).sum();
                (table.rows().len() * (3 + codes)) as u64
            };
            self.0 += Arena::KINDS.iter().zip(scene.tables()).map(bytes).sum::<u64>();
        }
    }
    let mut trial = arena(3, "rtt=80ms,loss=2%", 10);
    let mut whole = Whole(0);
    trial.run_millis(30_000, &mut whole);
    let sent: u64 = trial.players.iter().map(|player| player.view.stats().bytes).sum();
    let updates: u64 = trial.players.iter().map(|player| player.view.stats().updates).sum();
    println!("{} bytes an update, {} if it were whole", sent / updates, whole.0 / updates);
    assert!(sent * 5 <= whole.0 * 2, "{sent} of {}", whole.0);
}

/// Every player near another sees it moving smoothly.
#[test]
fn every_player_nearby_is_shown() {
    let mut trial = arena(5, "rtt=100ms,jitter=10ms,loss=2%", 6);
    let mut shown = Shown::default();
    let mut seen = 0;
    for _ in 0..20 {
        trial.run_millis(1_000, &mut shown);
        let state = trial.host.state();
        for player in &trial.players {
            let Some(view) = player.view.view_id() else { continue };
            let others = player.view.shown::<Avatar>().filter(|(id, ..)| *id != u32::from(view.0));
            seen += others.count();
        }
        assert!(state.own(ViewId(0)).is_some());
    }
    assert!(seen > 200, "{seen}");
}
