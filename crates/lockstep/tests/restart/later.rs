//! A session that had ended is resumed by any peer, on the same relay or another.

use sametick_lockstep::message::{Claim, Resume, ToPeer};
use sametick_lockstep::relay::{Kept, LINGER_US};
use sametick_lockstep::rows::Table;
use sametick_lockstep::session::{START_DELAY_US, Save};
use sametick_sim::{Seat, StateHash, Tick};

use crate::den::{Den, UID, find_welcome, live, welcomed};

/// Two players leave one after the other; then the session ends. Returns the relay, their claims, and the end's time.
fn ended() -> (Den, [Claim; 2], u64) {
    let mut den = Den::new(None);
    let claims = [1, 2].map(|member| welcomed(&den.join(member, None), member).2);
    let mut now = START_DELAY_US;
    for tick in 1..=200u64 {
        now = START_DELAY_US + tick * 1_000_000 / 60 + 1;
        den.run_to(now);
        if tick == 150 {
            den.leave(1);
        }
    }
    den.leave(2);
    while den.relay.sessions().count() > 0 {
        now += 16_000;
        den.run_to(now);
        assert!(now < 3 * LINGER_US);
    }
    (den, claims, now)
}

fn kept(den: &Den, ticks: usize) -> Kept {
    let mut kept = Kept::new(den.facts.clone().unwrap(), UID, 0, None);
    den.ticks[..ticks].iter().for_each(|rows| kept.push(rows));
    kept
}

#[test]
fn an_ended_session_goes_on_at_once_after_its_last_tick() {
    for is_same_relay in [true, false] {
        for who in [None, Some((0, 150)), Some((1, 200)), Some((1, 90))] {
            let (mut den, claims, now) = ended();
            let (kept, last) = (kept(&den, den.ticks.len()), den.ticks.len() as u32);
            if is_same_relay {
                den.found = Some(kept);
            } else {
                den = Den::new(Some(kept));
                den.run_to(now);
            }
            let resume =
                who.map(|(seat, have): (usize, u32)| Resume { claim: claims[seat], have: Tick(have) });
            let came = den.join(11, resume);
            assert_eq!((came.rewinds(), came.left()), (vec![Tick(last)], vec![]), "{who:?}");
            let first = who.map_or(1, |(_, have)| have + 1);
            assert_eq!(
                welcomed(&came, 11).1,
                Tick(first),
                "it is sent what it lacks, and takes nothing back"
            );
            assert_eq!(welcomed(&came, 11).2.restarts, 1);
            let came = den.run_to(now + START_DELAY_US + 17_000);
            assert_eq!(came.ticks, [Tick(last + 1)]);
        }
    }
}

#[test]
fn ticks_lost_from_the_log_are_void_on_the_same_relay_too() {
    let (mut den, claims, now) = ended();
    // No peer with more ticks joins: the session goes on without them.
    den.found = Some(kept(&den, 170));
    let came = den.join(11, None);
    assert!(came.is_nothing(), "by the log the seats are taken");
    let came = den.run_to(now + 2_000_000);
    assert_eq!(came.rewinds(), [Tick(170)]);
    let mut at = now + 2_000_000;
    for _ in 0..120 {
        at += 17_000;
        den.run_to(at);
    }
    // A peer with more ticks joins when the session is further: its ticks are void.
    let came = den.join(12, Some(Resume { claim: claims[1], have: Tick(200) }));
    assert_eq!(welcomed(&came, 12).1, Tick(171));
}

#[test]
fn a_claim_from_a_life_that_the_log_lost_is_void() {
    // A peer has a claim of a life that the log lost; others go on without it, with the same number of restarts.
    let life = live(300);
    let mut lost = life.restarted(300);
    lost.join(11, life.having(0, 290));
    let came = lost.join(12, life.having(1, 290));
    let void = welcomed(&came, 11).2;
    assert_eq!((void.restarts, void.from), (1, Tick(290)));
    let mut den = life.restarted(300);
    den.join(21, None);
    let came = den.run_to(2_000_000);
    assert_eq!((came.rewinds(), welcomed(&came, 21).2.restarts), (vec![Tick(300)], 1));
    let mut at = 2_000_000;
    for _ in 0..60 {
        at += 17_000;
        den.run_to(at);
    }
    let came = den.join(22, Some(Resume { claim: void, have: Tick(310) }));
    assert_eq!(welcomed(&came, 22).1, Tick(1), "nothing of what it has is known to hold");
}

#[test]
fn a_session_with_only_a_save_goes_on_from_it() {
    let life = live(300);
    let table = {
        let (mut table, mut bytes) = (Table::default(), vec![]);
        for rows in &life.ticks[..240] {
            table.put(&mut sametick_wire::bits::BitWriter::new(&mut bytes), rows);
        }
        table
    };
    let state = vec![1, 2, 3];
    let save = Save { tick: Tick(240), hash: StateHash::of_bytes(&state), state, table };
    // Another number: no peer has a claim to what was lost.
    let kept = Kept::new(life.facts.clone(), UID + 1, 0, Some(save));
    assert_eq!(kept.last(), Tick(240));
    let mut den = Den::new(Some(kept));
    assert!(den.join(11, life.having(0, 300)).is_nothing());
    let came = den.run_to(2_000_000);
    assert_eq!(came.rewinds(), [Tick(240)]);
    let save = came.messages.iter().find_map(|(_, message)| match message {
        ToPeer::Welcome { save, first, .. } => Some((save.as_ref().map(|it| it.tick), *first)),
        _ => None,
    });
    assert_eq!(save, Some((Some(Tick(240)), Tick(241))), "it begins with the save");
    let came = den.run_to(2_000_000 + START_DELAY_US + 17_000);
    assert_eq!(came.ticks, [Tick(241)]);
    assert_eq!(came.left(), [(Tick(241), Seat(0)), (Tick(241), Seat(1))], "who sat there by the save");
    assert!(find_welcome(&den.join(12, None), 12).is_some_and(|(seat, ..)| seat.is_some()));
}
