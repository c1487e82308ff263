//! The rules for resuming a session, over many random restarts.

use std::collections::BTreeMap;

use sametick_lockstep::message::GIVEN_TICKS;
use sametick_lockstep::session::{GIVING_US, MAX_BEHIND, REPORTS_US, START_DELAY_US};
use sametick_sim::{Rng, Seat, Tick, Time};

use crate::den::{Came, Den, Life, find_welcome, live_with};

/// The number of restarts drawn for each rule.
const SEEDS: u64 = 300;

/// One restart: the players, the log, and when each player comes back with which tick.
struct Case<'a> {
    life: &'a Life,
    /// The last tick of the log.
    log: u32,
    /// By seat: when the player comes, and which tick it has. Not all come in time.
    back: BTreeMap<usize, (u64, u32)>,
}

/// The first member id after the restart.
const AFTER: u64 = 100;

impl Case<'_> {
    fn draw<'a>(rng: &mut Rng, lives: &'a [Life]) -> Case<'a> {
        let life = rng.pick(lives).unwrap();
        let last = life.ticks.len() as u32;
        let log = last - rng.below(u64::from(last.min(700))) as u32;
        // Most are close to each other; some have hardly any ticks.
        let near = last - rng.below(u64::from(last.min(300))) as u32;
        let mut back = BTreeMap::new();
        for seat in 0..life.claims.len() {
            let have = match rng.below(10) {
                0 => rng.below(u64::from(last) + 1) as u32,
                1 => near.saturating_sub(MAX_BEHIND - 2 + rng.below(5) as u32),
                _ => (near + rng.below(20) as u32).min(last),
            };
            if !rng.chance(1, 4) {
                back.insert(seat, (rng.below(REPORTS_US * 5 / 4), have));
            }
        }
        Case { life, log, back }
    }

    /// When the first player comes, and when the wait ends.
    fn window(&self) -> Option<(u64, u64)> {
        let first = self.back.values().map(|(at, _)| *at).min()?;
        let last = self.back.values().map(|(at, _)| *at).max()?;
        let until = first + REPORTS_US;
        let are_all = self.back.len() == self.life.claims.len();
        Some((first, if are_all { last.min(until) } else { until }))
    }

    /// The ticks of the players that have come until then.
    fn haves(&self, until: u64) -> Vec<u32> {
        self.back.values().filter(|(at, _)| *at <= until).map(|(_, have)| *have).collect()
    }

    /// The tick to go on from, by the rules, if all lost ticks are given.
    fn resumes_at(&self, until: u64) -> u32 {
        let mut haves = self.haves(until);
        haves.retain(|have| *have <= self.log + GIVEN_TICKS);
        let newest = haves.iter().copied().max().unwrap_or(0).max(self.log);
        haves.into_iter().filter(|have| have + MAX_BEHIND >= newest).min().unwrap_or(self.log)
    }

    /// The players join, one after the other, up to a time. Returns the output, and the time of the first.
    fn come(&self, den: &mut Den, until: u64) -> (Came, Option<u64>) {
        let (mut all, mut first) = (Came::default(), None);
        let mut order: Vec<_> = self.back.iter().collect();
        order.sort_by_key(|(_, (at, _))| *at);
        for (seat, (at, have)) in order.into_iter().filter(|(_, (at, _))| *at <= until) {
            let came = den.run_to(at.saturating_sub(1));
            first = first.or((!came.is_nothing()).then_some(at.saturating_sub(1)));
            den.now = Time::from_micros(*at);
            all = all.and(came);
            let came = den.join(AFTER + *seat as u64, self.life.having(*seat, *have));
            first = first.or((!came.is_nothing()).then_some(*at));
            all = all.and(came);
        }
        let came = den.run_to(until);
        first = first.or((!came.is_nothing()).then_some(until));
        (all.and(came), first)
    }

    /// Answers the requests for lost ticks with the true ones.
    fn give(&self, den: &mut Den, came: &Came) -> Came {
        let mut all = Came::default();
        for member in came.asked() {
            let (_, have) = self.back[&((member - AFTER) as usize)];
            // A peer keeps whole runs of ticks, and gives those that have what is asked for.
            for given in self.life.given_all(self.log + 1, have as usize) {
                all = all.and(den.give(member, &given));
            }
        }
        all
    }
}

fn lives() -> Vec<Life> {
    [(1, 50), (2, 400), (3, 900), (5, 1_300)].map(|(players, ticks)| live_with(players, ticks)).into()
}

/// Draws restarts to which at least one player comes back, and checks each.
fn each(look: impl Fn(u64, &Case<'_>)) {
    let lives = lives();
    for seed in 0..SEEDS {
        let case = Case::draw(&mut Rng::new(seed), &lives);
        if !case.back.is_empty() {
            look(seed, &case);
        }
    }
}

#[test]
fn reports_are_waited_for_two_seconds_or_until_all_are_there() {
    each(|seed, case| {
        let (_, until) = case.window().unwrap();
        let mut den = case.life.restarted(case.log as usize);
        let (came, first) = case.come(&mut den, until);
        assert_eq!(first, Some(until), "seed {seed}");
        assert!(!came.asked().is_empty() || came.rewinds().len() == 1, "seed {seed}");
    });
}

#[test]
fn all_go_on_from_the_minimum_of_those_not_too_far_behind() {
    let (mut voided, mut given, mut late) = (0, 0, 0);
    let lives = lives();
    for seed in 0..SEEDS {
        let case = Case::draw(&mut Rng::new(seed), &lives);
        let Some((_, until)) = case.window() else { continue };
        let to = case.resumes_at(until);
        let mut den = case.life.restarted(case.log as usize);
        let (came, _) = case.come(&mut den, until);
        let lacks = !came.asked().is_empty();
        assert_eq!(lacks, to > case.log, "seed {seed}");
        let more = case.give(&mut den, &came);
        let came = came.and(more);
        assert_eq!(came.rewinds(), [Tick(to)], "seed {seed}");
        assert!(came.is_written_first || lacks, "seed {seed}: nobody is told before it is written");
        // The given ticks are the true ones.
        let closed: Vec<Tick> = (case.log + 1..=to).map(Tick).collect();
        assert_eq!(came.ticks, closed, "seed {seed}");
        assert_eq!(den.ticks, case.life.ticks[case.log.min(to) as usize..to as usize], "seed {seed}");
        for (seat, (at, have)) in &case.back {
            let Some((sits, first, claim)) = find_welcome(&came, AFTER + *seat as u64) else {
                assert!(*at > until, "seed {seed}: seat {seat} came in time");
                continue;
            };
            // A peer ahead goes back; one behind is sent what it lacks, all ticks if it has none or its tick is absurd.
            let is_known = *have > 0 && have.saturating_sub(to) <= MAX_BEHIND;
            let expected = if is_known { (*have).min(to) + 1 } else { 1 };
            assert_eq!((sits, first), (Some(Seat(*seat as u16)), Tick(expected)), "seed {seed}: has {have}");
            assert_eq!((claim.restarts, claim.from), (1, Tick(to)), "seed {seed}");
            late += u32::from(*have < to);
        }
        voided += u32::from(to < case.log);
        given += u32::from(to > case.log);
    }
    assert!(voided > 20 && given > 20 && late > 20, "{voided} {given} {late}");
}

#[test]
fn a_player_not_back_in_time_has_left_and_resumes_its_seat() {
    each(|seed, case| {
        let (_, until) = case.window().unwrap();
        let to = case.resumes_at(until);
        let mut den = case.life.restarted(case.log as usize);
        let (came, _) = case.come(&mut den, until);
        case.give(&mut den, &came);
        let begins = until + START_DELAY_US;
        let came = den.run_to(begins + 16_000);
        assert!(came.ticks.is_empty(), "seed {seed}: the session pauses");
        let came = den.run_to(begins + 17_000);
        assert_eq!(came.ticks, [Tick(to + 1)], "seed {seed}");
        let is_late = |seat: &usize| case.back.get(seat).is_none_or(|(at, _)| *at > until);
        let gone: Vec<usize> = (0..case.life.claims.len()).filter(is_late).collect();
        let left: Vec<_> = gone.iter().map(|seat| (Tick(to + 1), Seat(*seat as u16))).collect();
        assert_eq!(came.left(), left, "seed {seed}");
        for seat in gone {
            let came = den.join(AFTER + 50 + seat as u64, case.life.having(seat, to.min(20)));
            let (sits, ..) = find_welcome(&came, AFTER + 50 + seat as u64).unwrap();
            assert_eq!(sits, Some(Seat(seat as u16)), "seed {seed}");
        }
    });
}

#[test]
fn without_givers_no_ticks_are_made_up() {
    each(|seed, case| {
        let (_, until) = case.window().unwrap();
        let to = case.resumes_at(until).min(case.log);
        let mut den = case.life.restarted(case.log as usize);
        let (came, _) = case.come(&mut den, until);
        let mut all = came;
        if !all.asked().is_empty() {
            let came = den.run_to(until + GIVING_US - 1);
            assert!(came.is_nothing(), "seed {seed}");
            all = all.and(den.run_to(until + GIVING_US));
        }
        assert_eq!((all.rewinds(), all.ticks), (vec![Tick(to)], vec![]), "seed {seed}");
    });
}

/// A session over many restarts: the valid ticks are those closed, without those rewound.
#[test]
fn ticks_follow_each_other_over_any_number_of_restarts() {
    for seed in 0..30 {
        let mut rng = Rng::new(seed);
        let mut life = live_with(3, 200 + rng.below(300) as u32);
        for restarts in 1..=6u32 {
            let last = life.ticks.len() as u32;
            let log = last - rng.below(60) as u32;
            let mut den = life.restarted_after(log as usize, restarts - 1);
            let mut came = Came::default();
            let links = AFTER * u64::from(restarts);
            let haves: Vec<u32> = (0..3).map(|_| last - rng.below(70) as u32).collect();
            for (seat, have) in haves.iter().enumerate() {
                came = came.and(den.join(links + seat as u64, life.having(seat, *have)));
            }
            for member in came.asked() {
                let have = haves[(member - links) as usize] as usize;
                for given in life.given_all(log + 1, have) {
                    came = came.and(den.give(member, &given));
                }
            }
            let to = *haves.iter().min().unwrap();
            assert_eq!(came.rewinds(), [Tick(to)], "seed {seed}");
            life.ticks.truncate(to as usize);
            den.ticks.clear();
            for (seat, claim) in life.claims.iter_mut().enumerate() {
                *claim = find_welcome(&came, links + seat as u64).unwrap().2;
                assert_eq!((claim.restarts, claim.from), (restarts, Tick(to)), "seed {seed}");
            }
            let ticks = 100 + rng.below(100);
            for tick in 1..=ticks {
                let came = den.run_to(START_DELAY_US + tick * 1_000_000 / 60 + 1);
                assert_eq!(came.ticks, [Tick(to + tick as u32)], "seed {seed}");
            }
            life.ticks.append(&mut den.ticks);
        }
    }
}
