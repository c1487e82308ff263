//! Lockstep over WebSocket, where a lost packet delays what was sent after it on the same socket.

use sametick_lockstep::pair::Trial;
use sametick_pong::{Pong, Setup, autopilot};
use sametick_wire::Carrier;

/// The figures of a minute.
struct Minute {
    /// Late inputs of the player with the most of them.
    omissions: u32,
    /// The mean input round trip.
    input_ms: u32,
}

fn four_players(seed: u64, profile: &str, carrier: Carrier, extra: usize) -> Trial<Pong> {
    let mut trial = Trial::new(seed, profile.parse().unwrap());
    trial.set_carrier(carrier);
    trial.set_extra_sockets(extra);
    for _ in 0..4 {
        trial.join(4, &Setup::default(), |peer, _tick| match (peer.shown(), peer.seat()) {
            (Some((_, pong)), Some(seat)) => autopilot(pong, seat),
            _ => Default::default(),
        });
    }
    trial
}

fn play_a_minute(seed: u64, profile: &str, carrier: Carrier, extra: usize) -> Minute {
    let mut trial = four_players(seed, profile, carrier, extra);
    let (mut input_us, mut looks) = (0, 0);
    for _ in 0..60 {
        trial.run_millis(1_000);
        for player in &trial.players {
            input_us += u64::from(player.peer.diagnostics().input_rtt_us);
            looks += 1;
        }
    }
    let omissions = trial.players.iter().map(|player| player.peer.stats().omissions);
    Minute { omissions: omissions.max().unwrap(), input_ms: (input_us / looks / 1_000) as u32 }
}

#[test]
fn a_line_that_loses_5_percent_costs_few_inputs_and_little_time() {
    println!("| round trip | UDP | one socket | four extra sockets |\n|---|---|---|---|");
    for rtt in [50, 100, 150] {
        let profile = format!("rtt={rtt}ms,loss=5%");
        let worst = |carrier, extra| {
            let minutes: Vec<Minute> =
                (1..=2).map(|seed| play_a_minute(seed, &profile, carrier, extra)).collect();
            let omissions = minutes.iter().map(|minute| minute.omissions).max().unwrap();
            let input_ms = minutes.iter().map(|minute| minute.input_ms).max().unwrap();
            Minute { omissions, input_ms }
        };
        let (udp, one) = (worst(Carrier::Datagrams, 0), worst(Carrier::Stream, 0));
        let extra = worst(Carrier::Stream, 4);
        let shown = [&udp, &one, &extra].map(|it| format!("{} omissions, {} ms", it.omissions, it.input_ms));
        println!("| {rtt} ms | {} |", shown.join(" | "));
        assert!(extra.omissions <= 10, "{} of 3,580 ticks at {rtt} ms", extra.omissions);
        assert!(one.omissions > 2 * extra.omissions, "the network is not that bad at {rtt} ms");
        assert!(extra.input_ms < one.input_ms, "fewer omissions are not bought with delay at {rtt} ms");
    }
}

#[test]
fn extra_sockets_that_come_and_go_cost_only_a_few_inputs() {
    for seed in 1..=4 {
        let mut trial = four_players(seed, "rtt=60ms,jitter=10ms,loss=3%", Carrier::Stream, 0);
        for turn in 0..30 {
            trial.set_extra_sockets([4, 1, 0, 2, 0][turn % 5]);
            trial.run_millis(700);
        }
        assert!(trial.agreed() > 2_000, "{}", trial.agreed());
        for player in &trial.players {
            let stats = player.peer.stats();
            assert!(stats.omissions < 60, "{stats:?}");
            assert_eq!((stats.resyncs, stats.rewinds), (0, 0), "{stats:?}");
        }
    }
}
