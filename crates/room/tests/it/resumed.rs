//! A host that resumes where another ended: players who return in time have never left, the others leave, and the logs
//! of both replay to the state of the second.

use std::collections::BTreeSet;

use sametick_room::host::{Input, RETURN_US};
use sametick_room::{Host, HostConfig};
use sametick_sim::record::{Leaving, Record};
use sametick_sim::{Game, Inputs, Rng, Seat, StateHash, Tick, Time};

use crate::field::{Field, Setup};
use crate::played::{Room, player};

const PEOPLE: u8 = 6;

/// Players who have not returned leave this many ticks after a host resumes.
const RETURN_TICKS: u32 = (RETURN_US / Field::RATE.tick_micros()) as u32;

#[test]
fn a_resumed_host_keeps_the_state_and_the_seats() {
    for seed in 0..100 {
        let mut rng = Rng::new(seed);
        let config = HostConfig::default();
        let setup = Setup::default();
        let mut first = Room::new(Host::new(Time::ZERO, &setup, config), Time::ZERO);
        (1..=PEOPLE).for_each(|number| first.come(u64::from(number), number));
        first.run(1 + rng.below(200) as u32);
        let (tick, state) = (first.host.tick(), first.host.state().clone());
        let taken: Vec<Seat> = first.host.taken().collect();
        assert_eq!(taken.len(), usize::from(PEOPLE));

        // The clock of another process starts anew.
        let now = Time::from_micros(rng.below(1_000_000));
        let host = Host::resume(now, config, (tick, state), &taken);
        assert_eq!((host.tick(), StateHash::of(host.state())), (tick, StateHash::of(first.host.state())));
        let mut second = Room::new(host, now);
        for (number, seat) in (1..=PEOPLE).zip(&taken) {
            second.host.handle(now, Input::Hold(*seat, player(number), 60_000_000));
        }
        let back: Vec<u8> = (1..=PEOPLE).filter(|_| rng.chance(1, 2)).collect();
        // They return one by one, and all in time.
        for number in &back {
            second.come(100 + u64::from(*number), *number);
            second.run(rng.below(u64::from(RETURN_TICKS) / u64::from(PEOPLE)) as u32);
        }
        let until = tick + RETURN_TICKS;
        second.run(until.ticks_since(second.host.tick()) + 1 + rng.below(60) as u32);

        // Players who returned in time have never left; the others have left by then.
        let left = |record: &Record| match record {
            Record::Left { tick: at, seat, why } => Some((*at, *seat, *why)),
            _ => None,
        };
        let left: Vec<_> = second.said.iter().filter_map(left).collect();
        let (stayed, gone): (Vec<_>, Vec<_>) =
            (1..=PEOPLE).zip(&taken).partition(|(number, _)| back.contains(number));
        let expected = gone.iter().map(|(_, seat)| (until, **seat, Leaving::TimedOut));
        assert_eq!(left, expected.collect::<Vec<_>>(), "seed {seed}");
        let there = stayed.iter().map(|(number, seat)| (Some(player(*number)), Some(**seat)));
        assert_eq!(second.seats(), there.collect(), "seed {seed}");

        // A late player gets the same seat again, and no other player got it meanwhile.
        second.come(200, PEOPLE + 1);
        gone.iter().for_each(|(number, _)| second.come(300 + u64::from(*number), *number));
        second.run(3);
        let mut all: BTreeSet<_> =
            (1..=PEOPLE).zip(&taken).map(|(number, seat)| (Some(player(number)), Some(*seat))).collect();
        let newcomer =
            second.host.participants().find(|who| who.player == Some(player(PEOPLE + 1))).unwrap().seat;
        assert!(!taken.contains(&newcomer.unwrap()), "seed {seed}");
        all.insert((Some(player(PEOPLE + 1)), newcomer));
        assert_eq!(second.seats(), all, "seed {seed}");

        let (mut replayed, mut inputs) = (Field::new(&setup), Inputs::new());
        let ticks = first.ticks.iter().chain(&second.ticks);
        for (number, rows) in (1..).map(Tick).zip(ticks) {
            assert_eq!(rows.tick(), number, "seed {seed}");
            rows.decode(&mut inputs);
            replayed.step(&inputs);
        }
        assert_eq!(StateHash::of(&replayed), StateHash::of(second.host.state()), "seed {seed}");
    }
}
