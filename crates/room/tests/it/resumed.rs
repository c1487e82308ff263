//! A host that goes on where another has ended: whoever is back at once has never gone, the others have left, and the log of both
//! replays to what the second has.

use std::collections::BTreeSet;

use sametick_room::host::{Input, Known, Output};
use sametick_room::message::{Join, ToHost};
use sametick_room::{Host, HostConfig};
use sametick_sim::record::{Leaving, Record, TickInputs};
use sametick_sim::{Game, Inputs, Rng, Seat, StateHash, Tick, Time};
use sametick_wire::control::to_bytes;
use sametick_wire::identity::PlayerId;
use sametick_wire::{Channel, Member};

use crate::field::{Field, Setup};

const PEOPLE: u8 = 6;

fn player(number: u8) -> PlayerId {
    PlayerId::from_bytes([number; 16])
}

/// A host, and what it has said for the log.
struct Room {
    host: Host<Field>,
    now: Time,
    ticks: Vec<TickInputs>,
    said: Vec<Record>,
}

impl Room {
    fn new(host: Host<Field>, now: Time) -> Room {
        Room { host, now, ticks: Vec::new(), said: Vec::new() }
    }

    fn come(&mut self, member: u64, number: u8) {
        let (seat, kept, character) = (None, &[][..], &[][..]);
        let known = Known { player: player(number), seat, kept, character };
        self.host.handle(self.now, Input::Known(Member(member), known));
        let join = Join {
            game: Field::NAME.into(),
            commit: String::new(),
            name: format!("player {number}"),
            setup: Vec::new(),
            seed: 0,
            seats: 16,
            watch: false,
            listed: true,
            resume: None,
            token: None,
        };
        let join = to_bytes(&ToHost::Join(join));
        self.host.handle(self.now, Input::Message(Member(member), Channel::Control, &join));
    }

    /// Steps so many ticks.
    fn run(&mut self, ticks: u32) {
        let until = self.host.tick() + ticks;
        let mut bytes = Vec::new();
        while self.host.tick() < until {
            match self.host.poll_output(&mut bytes) {
                Output::WakeAt(at) => {
                    self.now = at;
                    self.host.handle(at, Input::Timeout);
                }
                Output::Stepped(_) => self.ticks.push(self.host.inputs().clone()),
                Output::Record(record) => self.said.push(record),
                _ => {}
            }
        }
        // What was said of the last tick.
        loop {
            match self.host.poll_output(&mut bytes) {
                Output::WakeAt(_) => break,
                Output::Stepped(_) => self.ticks.push(self.host.inputs().clone()),
                Output::Record(record) => self.said.push(record),
                _ => {}
            }
        }
    }

    fn seats(&self) -> BTreeSet<(Option<PlayerId>, Option<Seat>)> {
        self.host.participants().map(|who| (who.player, who.seat)).collect()
    }
}

#[test]
fn a_host_that_goes_on_has_the_same_state_and_those_who_are_back_their_seats() {
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

        // The clock of another process begins anew.
        let now = Time::from_micros(rng.below(1_000_000));
        let host = Host::resume(now, config, (tick, state), &taken);
        assert_eq!((host.tick(), StateHash::of(host.state())), (tick, StateHash::of(first.host.state())));
        let mut second = Room::new(host, now);
        for (number, seat) in (1..=PEOPLE).zip(&taken) {
            second.host.handle(now, Input::Hold(*seat, player(number), 60_000_000));
        }
        let back: Vec<u8> = (1..=PEOPLE).filter(|_| rng.chance(1, 2)).collect();
        back.iter().for_each(|number| second.come(100 + u64::from(*number), *number));
        second.run(1 + rng.below(60) as u32);

        // Who was back before the next tick has never gone; the others have left in it.
        let left = |record: &Record| match record {
            Record::Left { tick: at, seat, why } => Some((*at, *seat, *why)),
            _ => None,
        };
        let left: Vec<_> = second.said.iter().filter_map(left).collect();
        let (stayed, gone): (Vec<_>, Vec<_>) =
            (1..=PEOPLE).zip(&taken).partition(|(number, _)| back.contains(number));
        let expected = gone.iter().map(|(_, seat)| (tick.next(), **seat, Leaving::TimedOut));
        assert_eq!(left, expected.collect::<Vec<_>>(), "seed {seed}");
        let there = stayed.iter().map(|(number, seat)| (Some(player(*number)), Some(**seat)));
        assert_eq!(second.seats(), there.collect(), "seed {seed}");

        // Somebody who is late has their seat again, and nobody else has it meanwhile.
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
