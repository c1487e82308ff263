//! One tick of arena: joins and inputs, movement, building, and shots.

use alloc::vec::Vec;

use sametick_sim::{BuildId, Game, Inputs, Rng, Tick, TickRate};

use crate::ai;
use crate::input::Input;
use crate::map::Map;
use crate::round::Round;
use crate::setup::{FIRST_BOT, Rules, Setup};
use crate::state::Arena;

/// How many ticks a second.
pub const RATE: TickRate = TickRate::hz(30);

impl Game for Arena {
    const NAME: &'static str = "arena";
    const RATE: TickRate = RATE;
    const BUILD: BuildId = sametick_sim::build_id!();
    type Setup = Setup;
    type Input = Input;

    fn new(setup: &Setup) -> Arena {
        let rules = Rules::of(setup);
        let mut rng = Rng::new(setup.seed);
        let mut arena = Arena {
            tick: Tick::ZERO,
            rules,
            won: None,
            round: Round::FIRST,
            people: Vec::with_capacity(rules.players()),
            by_x: Vec::with_capacity(rules.players()),
            map: if setup.rocks { Map::with_rocks(rules.size, &mut rng) } else { Map::bare(rules.size) },
            shots: Vec::new(),
            next_shot: 0,
            asks: Vec::new(),
            happened: Vec::new(),
            rng,
        };
        for bot in 0..u16::from(rules.bots) {
            arena.enter(usize::from(bot), FIRST_BOT + bot);
        }
        arena
    }

    fn step(&mut self, inputs: &Inputs<Input>) {
        self.tick = Tick(self.tick.0.saturating_add(1));
        self.asks.clear();
        self.happened.clear();
        self.sit_all(inputs);
        self.receive(inputs);
        self.play_bots();
        self.move_all();
        self.build();
        self.fire_all();
        self.fly_all();
        self.settle_all();
        self.respawn_all();
        self.go_on();
        self.drop_left(inputs);
    }

    /// The same walk, aim and trigger, without an action: a repeated action would build twice.
    fn guess(last: &Input) -> Input {
        last.going_on()
    }
}

impl Arena {
    fn play_bots(&mut self) {
        let first = self.people.partition_point(|person| !person.is_bot());
        for at in first..self.people.len() {
            let own = self.people[at].own;
            let input = ai::think(&own, self.tick, self.rules.seed, self);
            self.take(at, &input);
        }
    }
}
