//! `netem` behaves as its profile says: measured over many packets and seeds, in virtual time.

use proptest::prelude::*;
use sametick_sim::Time;
use sametick_wire::netem::{Bandwidth, Chance, Loss, MAX_IN_FLIGHT_PACKETS, Netem, Profile, Reorder, Stats};

/// Enough that a share of a few percent is measured to a few tenths.
const MANY: u32 = 100_000;
const INTERVAL_US: u64 = 1_000;

#[derive(Debug, PartialEq)]
struct Arrival {
    number: u32,
    sent: Time,
    at: Time,
    bytes: Vec<u8>,
}

impl Arrival {
    fn delay_us(&self) -> u64 {
        self.at.micros_since(self.sent)
    }
}

fn payload(number: u32, len: usize) -> Vec<u8> {
    let mut bytes = number.to_le_bytes().to_vec();
    bytes.resize(len.max(4), number as u8);
    bytes
}

/// Sends `count` packets of `len` bytes every `INTERVAL_US` and collects what arrives, at the moment it does.
fn run(profile: Profile, seed: u64, count: u32, len: usize) -> (Vec<Arrival>, Stats) {
    run_on(Netem::new(profile, seed), count, len)
}

fn run_on(mut link: Netem<u32>, count: u32, len: usize) -> (Vec<Arrival>, Stats) {
    let mut arrivals = Vec::new();
    let sent_at = |number: u32| Time::from_micros(u64::from(number) * INTERVAL_US);
    for number in 0..count {
        drain(&mut link, sent_at(number), &sent_at, &mut arrivals);
        link.send(sent_at(number), number, &payload(number, len));
    }
    drain(&mut link, Time::from_micros(u64::MAX), &sent_at, &mut arrivals);
    assert_eq!(link.in_flight(), 0);
    (arrivals, link.stats())
}

fn drain(link: &mut Netem<u32>, until: Time, sent_at: &impl Fn(u32) -> Time, arrivals: &mut Vec<Arrival>) {
    let mut buf = Vec::new();
    while let Some(at) = link.next_delivery().filter(|&at| at <= until) {
        assert!(at == Time::ZERO || link.poll(Time::from_micros(at.as_micros() - 1), &mut buf).is_none());
        let number = link.poll(at, &mut buf).expect("a packet is due");
        arrivals.push(Arrival { number, sent: sent_at(number), at, bytes: buf.clone() });
    }
}

fn parse(text: &str) -> Profile {
    text.parse().unwrap()
}

/// `measured` of `of` lies within `tolerance_ppm` of `expected`.
fn assert_share(measured: u64, of: u64, expected: Chance, tolerance_ppm: u64) {
    let ppm = measured * 1_000_000 / of;
    assert!(
        ppm.abs_diff(u64::from(expected.ppm())) <= tolerance_ppm,
        "measured {ppm} ppm, expected {} ± {tolerance_ppm}",
        expected.ppm()
    );
}

#[test]
fn the_perfect_network_delivers_at_once_and_in_order() {
    let (arrivals, stats) = run(Profile::default(), 1, 1_000, 100);
    assert_eq!(stats.delivered, 1_000);
    assert_eq!(stats.bytes_delivered, stats.bytes_sent);
    for (number, arrival) in (0..).zip(&arrivals) {
        assert_eq!((arrival.number, arrival.delay_us()), (number, 0));
        assert_eq!(arrival.bytes, payload(number, 100));
    }
}

#[test]
fn uniform_loss_has_its_share_and_is_independent() {
    for (seed, percent) in [(1, 2), (2, 10), (3, 30), (4, 100)] {
        let mean = Chance::from_percent(percent);
        let (arrivals, stats) =
            run(Profile { loss: Loss::Uniform(mean), ..Profile::default() }, seed, MANY, 4);
        assert_eq!(stats.lost + stats.delivered, u64::from(MANY));
        assert_share(stats.lost, u64::from(MANY), mean, 5_000);
        if percent < 100 {
            let alone = 100.0 / f64::from(100 - percent);
            assert!((mean_burst(&arrivals, MANY) - alone).abs() < 0.05 * alone);
        }
    }
}

#[test]
fn burst_loss_has_its_mean_and_length() {
    for (percent, burst_packets) in [(2, 4), (5, 2), (10, 8), (30, 3), (30, 1)] {
        for seed in 0..3 {
            let mean = Chance::from_percent(percent);
            let loss = Loss::Burst { mean, burst_packets };
            let (arrivals, stats) = run(Profile { loss, ..Profile::default() }, seed, 2 * MANY, 4);
            assert_share(stats.lost, u64::from(2 * MANY), mean, 8_000);
            let (length, wanted) = (mean_burst(&arrivals, 2 * MANY), f64::from(burst_packets));
            assert!((length - wanted).abs() <= 0.1 * wanted, "{percent} %: {length} instead of {wanted}");
        }
    }
}

#[test]
fn a_mean_too_high_for_short_bursts_is_met_with_longer_ones() {
    for percent in [60, 90, 100] {
        let mean = Chance::from_percent(percent);
        let loss = Loss::Burst { mean, burst_packets: 1 };
        let (_, stats) = run(Profile { loss, ..Profile::default() }, 5, MANY, 4);
        assert_share(stats.lost, u64::from(MANY), mean, 8_000);
    }
}

/// The mean length of the runs of missing numbers.
fn mean_burst(arrivals: &[Arrival], count: u32) -> f64 {
    let mut arrived = vec![false; count as usize];
    for arrival in arrivals {
        arrived[arrival.number as usize] = true;
    }
    let lost = arrived.iter().filter(|here| !**here).count();
    let bursts = arrived.chunk_by(|a, b| a == b).filter(|run| !run[0]).count();
    lost as f64 / bursts as f64
}

#[test]
fn duplicates_have_their_share_and_are_intact() {
    let profile = parse("dup=50%,latency=20ms,jitter=5ms");
    let (arrivals, stats) = run(profile, 11, MANY, 20);
    assert_share(stats.duplicated, u64::from(MANY), Chance::from_percent(50), 8_000);
    assert_eq!(stats.delivered, u64::from(MANY) + stats.duplicated);
    assert!(arrivals.iter().all(|arrival| arrival.bytes == payload(arrival.number, 20)));
    assert!(arrivals.is_sorted_by_key(|arrival| arrival.number), "a copy is no reason to reorder");
}

#[test]
fn reordered_packets_have_their_share_and_lateness() {
    let (arrivals, stats) = run(parse("latency=20ms,reorder=5%,late=10ms..30ms"), 3, MANY, 4);
    assert_share(stats.reordered, u64::from(MANY), Chance::from_percent(5), 3_000);
    let late = arrivals.iter().filter(|arrival| arrival.delay_us() > 20_000);
    assert!(late.clone().all(|arrival| (30_000..=50_000).contains(&arrival.delay_us())));
    assert_eq!(late.count() as u64, stats.reordered);
}

#[test]
fn without_reorder_even_heavy_jitter_keeps_the_order() {
    let (arrivals, stats) = run(parse("latency=100ms,jitter=100ms,loss=10%"), 4, MANY, 4);
    assert!(arrivals.is_sorted_by_key(|arrival| arrival.number));
    assert!(arrivals.is_sorted_by_key(|arrival| arrival.at));
    assert_eq!(stats.reordered, 0);
}

#[test]
fn delays_fill_latency_plus_minus_jitter() {
    // Jitter below half the interval: a packet is never held back by the one before, so the drawn delay is visible.
    let (arrivals, _) = run(parse("latency=30ms,jitter=400us"), 9, MANY, 4);
    let delays = || arrivals.iter().map(Arrival::delay_us);
    assert_eq!((delays().min(), delays().max()), (Some(29_600), Some(30_400)));
    let mean_us = delays().sum::<u64>() / u64::from(MANY);
    assert!(mean_us.abs_diff(30_000) < 5, "{mean_us}");
    let lower_half = delays().filter(|&delay| delay < 30_000).count() as u64;
    assert_share(lower_half, u64::from(MANY), Chance::from_percent(50), 8_000);
}

#[test]
fn jitter_above_latency_never_delivers_into_the_past() {
    let (arrivals, _) = run(parse("latency=100us,jitter=300us"), 9, MANY, 4);
    let delays = || arrivals.iter().map(Arrival::delay_us);
    assert_eq!((delays().min(), delays().max()), (Some(0), Some(400)));
}

#[test]
fn corruption_has_its_share_and_flips_few_bits() {
    let (arrivals, stats) = run(parse("corrupt=10%"), 6, MANY, 8);
    assert_share(stats.corrupted, u64::from(MANY), Chance::from_percent(10), 5_000);
    let mut damaged = 0;
    for arrival in &arrivals {
        let intact = payload(arrival.number, 8);
        let flipped: u32 = intact.iter().zip(&arrival.bytes).map(|(a, b)| (a ^ b).count_ones()).sum();
        assert!(flipped <= 8 && intact.len() == arrival.bytes.len());
        damaged += u64::from(flipped > 0);
    }
    assert_eq!(damaged, stats.corrupted);
}

#[test]
fn the_bottleneck_limits_the_rate_and_delays_by_its_queue() {
    // 200 bytes every millisecond want 200 kB/s; half of that fits.
    let (arrivals, stats) = run(parse("latency=10ms,rate=100kB,queue=10kB"), 2, 20_000, 200);
    assert!(arrivals.is_sorted_by_key(|arrival| arrival.number));
    let span_us = arrivals.last().unwrap().at.micros_since(arrivals[0].at);
    let full_rate = span_us * 100_000 / 1_000_000 + 200;
    assert!(stats.bytes_delivered <= full_rate && stats.bytes_delivered + 1_000 >= full_rate);
    for second in 0..20 {
        let in_second = arrivals.iter().filter(|a| a.at.as_micros() / 1_000_000 == second).count();
        assert!(in_second * 200 <= 100_000 + 200, "{in_second} packets in second {second}");
    }
    // Full: 10 kB at 100 kB/s are 100 ms, then the latency.
    let longest = arrivals.iter().map(Arrival::delay_us).max().unwrap();
    assert!((108_000..=110_000).contains(&longest), "{longest}");
    assert_eq!(stats.queue_dropped + stats.delivered, stats.sent);
    assert_share(stats.queue_dropped, stats.sent, Chance::from_percent(50), 10_000);
}

#[test]
fn an_idle_bottleneck_costs_only_the_sending_time() {
    let mut link = Netem::new(parse("rate=1MB,queue=0B"), 0);
    link.send(Time::ZERO, 1, &[0; 1500]);
    link.send(Time::from_micros(1_499), 2, &[0; 1]);
    link.send(Time::from_micros(1_500), 3, &[0; 1]);
    let mut buf = Vec::new();
    assert_eq!(link.next_delivery(), Some(Time::from_micros(1_500)));
    assert_eq!(link.poll(Time::from_millis(9), &mut buf), Some(1));
    assert_eq!(link.poll(Time::from_millis(9), &mut buf), Some(3));
    assert_eq!(link.stats().queue_dropped, 1);
}

#[test]
fn without_loss_all_arrives_once_in_order_at_the_rate() {
    let profile =
        parse("rtt=80ms,jitter=30ms,loss=30%,burst=4,dup=50%,reorder=20%,corrupt=5%,rate=100kB,queue=1kB");
    let (arrivals, stats) = run(Profile { loss: Loss::None, ..profile.of_stream() }, 8, 5_000, 200);
    assert_eq!(stats.delivered, 5_000);
    assert!((0..).zip(&arrivals).all(|(n, arrival)| arrival.number == n && arrival.bytes == payload(n, 200)));
    assert!(arrivals.last().unwrap().at >= Time::from_millis(10_000 + 10));
}

#[test]
fn a_stream_loses_nothing_but_a_loss_delays_what_follows() {
    let profile = parse("rtt=80ms,loss=5%,dup=50%,reorder=20%,corrupt=5%");
    let (arrivals, stats) = run_on(Netem::stream(profile, 8), 5_000, 200);
    assert_eq!((stats.delivered, stats.duplicated, stats.corrupted), (5_000, 0, 0));
    assert!((0..).zip(&arrivals).all(|(n, arrival)| arrival.number == n && arrival.bytes == payload(n, 200)));
    assert_share(stats.lost, stats.sent + stats.lost, Chance::from_percent(5), 10_000);
    let took_us = |arrival: &Arrival| arrival.at.micros_since(arrival.sent);
    assert!(arrivals.iter().all(|arrival| took_us(arrival) >= 40_000));
    // A packet that was lost takes a round trip and a quarter more, and so does the one sent right after it.
    let late = arrivals.iter().filter(|arrival| took_us(arrival) > 40_000).count() as u64;
    assert!(late > 2 * stats.lost, "{late} late, {} lost", stats.lost);
    assert!(arrivals.iter().any(|arrival| took_us(arrival) >= 140_000));
    // A stream on which every packet is lost still delivers in the end.
    assert_eq!(run_on(Netem::stream(parse("rtt=10ms,loss=100%"), 1), 10, 5).0.len(), 10);
}

#[test]
fn a_partition_drops_all_that_is_sent_and_heals() {
    let mut link = Netem::new(parse("latency=10ms"), 0);
    let mut buf = Vec::new();
    link.send(Time::ZERO, (), b"before");
    link.set_down(true);
    for ms in 0..1_000 {
        link.send(Time::from_millis(ms), (), b"during");
    }
    link.set_down(false);
    link.send(Time::from_millis(1_000), (), b"after");
    assert_eq!(link.poll(Time::from_millis(2_000), &mut buf).map(|()| &buf[..]), Some(&b"before"[..]));
    assert_eq!(link.poll(Time::from_millis(2_000), &mut buf).map(|()| &buf[..]), Some(&b"after"[..]));
    assert_eq!(link.poll(Time::from_millis(2_000), &mut buf), None);
    assert_eq!((link.stats().cut, link.stats().delivered), (1_000, 2));
}

#[test]
fn a_changed_profile_holds_from_the_next_packet() {
    let mut link = Netem::new(parse("latency=10ms"), 0);
    link.send(Time::ZERO, (), b"slow");
    link.set_profile(parse("loss=100%"));
    link.send(Time::ZERO, (), b"lost");
    link.set_profile(Profile::default());
    assert_eq!(link.profile(), &Profile::default());
    assert_eq!((link.in_flight(), link.stats().lost), (1, 1));
}

#[test]
fn the_data_in_flight_is_bounded() {
    let mut link = Netem::new(parse("latency=10s"), 0);
    for _ in 0..MAX_IN_FLIGHT_PACKETS + 10 {
        link.send(Time::ZERO, (), b"x");
    }
    assert_eq!((link.in_flight(), link.stats().overflowed), (MAX_IN_FLIGHT_PACKETS, 10));
    assert!(link.is_full(1));

    let mut link = Netem::new(parse("latency=10s"), 0);
    let packet = vec![0; 1_000_000];
    for _ in 0..60 {
        link.send(Time::ZERO, (), &packet);
    }
    assert_eq!((link.in_flight(), link.stats().overflowed), (50, 10));
}

#[test]
fn no_allocation_in_steady_state() {
    let profile = parse("rtt=60ms,jitter=20ms,loss=5%,burst=2,dup=20%,reorder=10%,corrupt=5%,rate=10MB");
    let mut link = Netem::new(profile, 12);
    let mut buf = Vec::with_capacity(1_500);
    let packet = [7; 1_200];
    let mut second = |from_ms: u64| {
        for ms in from_ms..from_ms + 1_000 {
            let now = Time::from_millis(ms);
            link.send(now, ms, &packet[..200 + (ms % 1_000) as usize]);
            while link.poll(now, &mut buf).is_some() {}
        }
    };
    // The amount in flight varies a little, and each buffer has to hold a long packet once.
    let counted = allocation_counter::measure(|| (0..20).for_each(|s| second(s * 1_000)));
    assert!(counted.count_total > 0, "the counter counts");
    let counted = allocation_counter::measure(|| (20..30).for_each(|s| second(s * 1_000)));
    assert_eq!(counted.count_total, 0);
}

#[test]
fn errors_name_the_mistake_and_the_right_form() {
    let message = |text: &str| text.parse::<Profile>().unwrap_err().to_string();
    let keys = "the keys are rtt, latency, jitter, loss, burst, dup, reorder, late, corrupt, rate, queue";
    assert_eq!(message("los=2%"), format!("there is no key \"los\"; {keys}"));
    assert_eq!(message("loss"), format!("\"loss\" is not key=value; {keys}"));
    assert_eq!(message("loss=120%"), "loss=120%: expected a share like 2% or 0.02, at most 100%");
    assert_eq!(message("rtt=100"), "rtt=100: expected a duration like 20ms, 1.5s or 250us");
    assert_eq!(message("rtt=1ms,rtt=1ms"), "rtt is given twice");
    assert_eq!(message("rtt=1ms,latency=1ms"), "rtt and latency are both given; use one of them");
    assert_eq!(message("burst=3"), "burst is given without loss");
    assert_eq!(message("late=1ms..2ms"), "late is given without reorder");
    assert_eq!(message("queue=1kB"), "queue is given without rate");
    for bad in [
        "rtt=",
        "rtt=.ms",
        "rtt=1.ms",
        "rtt=-1ms",
        "rtt=1.0001ms",
        "rtt=0.01us",
        "rtt=99999999999999999999s",
        "rtt=1.2.3s",
        "loss=0.0000001",
        "loss=1.1",
        "loss=%",
        "loss=NaN",
        "burst=0",
        "late=5ms..1ms",
        "late=5ms",
        "rate=7bit",
        "rate=1kb",
        "queue=1",
        ",",
        "loss=2%,",
        "=",
    ] {
        assert!(bad.parse::<Profile>().is_err(), "{bad:?} was read");
    }
}

#[test]
fn values_are_read_exactly() {
    assert_eq!(parse(""), Profile::default());
    assert_eq!(parse("perfect"), Profile::default());
    assert_eq!(parse(" rtt = 0.5s , jitter=1.5 ms").latency_us, 250_000);
    assert_eq!(parse("loss=0.02"), parse("loss=2%"));
    assert_eq!(parse("loss=0.0001%").loss, Loss::Uniform(Chance::from_ppm(1)));
    assert_eq!(parse("rate=1mbit"), parse("rate=125kB"));
    assert_eq!(
        parse("rate=1.5Mbit,queue=unlimited").bandwidth.map(|b| (b.bytes_per_second, b.queue_bytes)),
        Some((187_500, None))
    );
    assert_eq!(parse("loss=10%,burst=4").to_string(), "loss=10%,burst=4");
    assert_eq!(parse("reorder=0.05%").to_string(), "reorder=0.05%,late=10ms..50ms");
}

fn any_chance() -> impl Strategy<Value = Chance> {
    prop_oneof![Just(0), Just(1_000_000), 0..=1_000_000u32].prop_map(Chance::from_ppm)
}

fn any_micros() -> impl Strategy<Value = u64> {
    prop_oneof![
        Just(0),
        (0..1_000u64).prop_map(|ms| ms * 1_000),
        0..3_000_000u64,
        (0..9u64).prop_map(|s| s * 1_000_000)
    ]
}

fn any_profile() -> impl Strategy<Value = Profile> {
    let loss = prop_oneof![
        Just(Loss::None),
        any_chance().prop_map(Loss::Uniform),
        (any_chance(), 1..50u32).prop_map(|(mean, burst_packets)| Loss::Burst { mean, burst_packets }),
    ];
    let reorder = (any_chance(), any_micros(), any_micros()).prop_map(|(chance, a, b)| Reorder {
        chance,
        min_us: a.min(b),
        max_us: a.max(b),
    });
    let bandwidth = (1..10_000_000u64, proptest::option::of(0..1_000_000u64))
        .prop_map(|(bytes_per_second, queue_bytes)| Bandwidth { bytes_per_second, queue_bytes });
    let times = (any_micros(), any_micros());
    (times, loss, any_chance(), proptest::option::of(reorder), any_chance(), proptest::option::of(bandwidth))
        .prop_map(|((latency_us, jitter_us), loss, duplicate, reorder, corrupt, bandwidth)| Profile {
            latency_us,
            jitter_us,
            loss,
            duplicate,
            reorder,
            corrupt,
            bandwidth,
        })
}

proptest! {
    #[test]
    fn text_round_trips(profile in any_profile()) {
        prop_assert_eq!(profile.to_string().parse::<Profile>(), Ok(profile));
    }

    #[test]
    fn no_text_panics(text in "([a-z]{0,7}=?[0-9.%a-zB]{0,8},?){0,4}") {
        let _ = text.parse::<Profile>();
    }

    #[test]
    fn one_seed_gives_one_result(profile in any_profile(), seed: u64) {
        prop_assert_eq!(run(profile, seed, 200, 30), run(profile, seed, 200, 30));
    }

    #[test]
    fn every_packet_is_accounted_for(profile in any_profile(), seed: u64) {
        let (arrivals, stats) = run(profile, seed, 300, 30);
        prop_assert_eq!(stats.sent, 300);
        prop_assert_eq!(stats.delivered, arrivals.len() as u64);
        let gone = stats.lost + stats.cut + stats.queue_dropped + stats.overflowed;
        prop_assert_eq!(stats.sent + stats.duplicated, stats.delivered + gone);
        prop_assert!(arrivals.is_sorted_by_key(|arrival| arrival.at));
        prop_assert!(profile.reorder.is_some() || stats.reordered == 0);
        let least = profile.latency_us.saturating_sub(profile.jitter_us);
        prop_assert!(arrivals.iter().all(|arrival| arrival.delay_us() >= least));
    }
}
