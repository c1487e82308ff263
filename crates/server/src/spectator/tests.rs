//! Tests of the spectator with a relay and one idle player.

use postcard_schema::Schema;
use sametick_lockstep::assignment::SeatAssignment;
use sametick_lockstep::message::{self, Join, ToRelay};
use sametick_lockstep::relay::{Found, Input, Kept, Output, Relay, RelayConfig, SessionKey};
use sametick_lockstep::rows::Opaque;
use sametick_lockstep::session::{Facts, SessionId};
use sametick_pong::Pong;
use sametick_sim::contest::{Contest, Outcome, SeatGroup, Wanted};
use sametick_sim::{BuildId, Game, Inputs, SchemaHash, Seat, StateHash, Tick, TickRate, Time, to_canonical};
use sametick_wire::identity::PlayerId;
use sametick_wire::{Channel, Member};
use serde::{Deserialize, Serialize};

use super::{Spectator, Told};
use crate::games;
use crate::games::Games;

/// A game that fails in a tick.
#[derive(Clone, Serialize, Deserialize, Schema)]
struct Brittle(u32);

impl Game for Brittle {
    const NAME: &'static str = "brittle";
    const RATE: TickRate = TickRate::hz(60);
    const BUILD: BuildId = BuildId::from_bytes([9; 16]);
    type Setup = u32;
    type Input = u8;

    fn new(ticks: &u32) -> Brittle {
        Brittle(*ticks)
    }

    fn step(&mut self, _: &Inputs<u8>) {
        self.0 = self.0.checked_sub(1).expect("it holds for so many ticks");
    }
}

impl Contest for Brittle {
    const GROUPS: &'static [SeatGroup] = &[SeatGroup { name: "All", seats: &["only"] }];
    const SCENARIOS: &'static [&'static str] = &[];

    fn setup(_: &Wanted<'_>) -> u32 {
        50
    }

    fn outcome(&self) -> Option<Outcome> {
        None
    }
}

fn known() -> Games {
    games![Pong[2..=4]; sessions, Brittle; sessions]
}

struct Stage {
    relay: Relay,
    follower: Spectator,
    now: Time,
    key: SessionKey,
    /// The result of a search for a stored session.
    found: Option<Kept>,
    begun: Option<Facts>,
    rows: Vec<Inputs<Opaque>>,
    told: Vec<Told>,
}

impl Stage {
    fn new<G: Game>(found: Option<Kept>) -> Stage {
        let config = RelayConfig { finds: true, ..RelayConfig::default() };
        let key = SessionKey { build: G::BUILD, name: "den".into() };
        let (begun, rows, told) = Default::default();
        let (relay, follower) = (Relay::new(config), Spectator::new(known()));
        Stage { relay, follower, now: Time::ZERO, key, found, begun, rows, told }
    }

    fn come<G: Contest>(&mut self, member: u64, assignment: bool) {
        let member = Member(member);
        self.handle(Input::Opened(member, self.key.clone(), SchemaHash::from_bytes([3; SchemaHash::LEN])));
        let wanted = Wanted { seed: 7, seats: 2, scenario: Some("short"), difficulty: 11 };
        let setup = to_canonical(&G::setup(&wanted)).unwrap();
        if assignment {
            let (player, name) = (PlayerId(1), "ada".to_owned());
            let assignment = SeatAssignment {
                player,
                name,
                seat: Some(Seat(0)),
                game: G::NAME.into(),
                rate: G::RATE,
                setup: setup.clone(),
                seed: 7,
                seats: 2,
                listed: false,
            };
            self.handle(Input::Assigned(member, assignment));
        }
        let join = Join {
            game: G::NAME.into(),
            commit: String::new(),
            setup,
            seed: 0,
            rate: G::RATE.per_second() as u16,
            seats: 2,
            wait_for: 1,
            name: String::new(),
            watch: false,
            seat: None,
            listed: false,
            resume: None,
            bring: None,
        };
        let bytes = message::to_bytes(&ToRelay::Join(join));
        self.handle(Input::Message(member, Channel::Control, &bytes));
    }

    fn handle(&mut self, input: Input<'_>) {
        self.relay.handle(self.now, input);
        loop {
            match self.relay.poll_output(&mut vec![]) {
                Output::Find(key) => {
                    let kept = self.found.take().map(|kept| Found::Kept(Box::new(kept)));
                    self.relay.handle(self.now, Input::Found(key, kept.unwrap_or(Found::New { uid: 5 })));
                }
                Output::Begun(id) => self.begun = self.relay.session(id).map(|it| it.facts().clone()),
                Output::Closed(id, tick) => {
                    self.rows.extend(self.relay.session(id).and_then(|it| it.rows(tick)).cloned());
                }
                Output::Ended(id) => self.follower.forget(id),
                Output::Wait | Output::WakeAt(_) => break,
                _ => {}
            }
        }
        self.follower.look(&self.relay);
        self.told.extend(std::iter::from_fn(|| self.follower.poll()));
    }

    /// Runs until the end of a game is reported, or for this many ticks.
    fn run(&mut self, ticks: u64) {
        for _ in 0..ticks {
            if self.told.is_empty() {
                self.now = self.now.plus_micros(16_667);
                self.handle(Input::Timeout);
            }
        }
    }

    fn id(&self) -> SessionId {
        self.relay.find(&self.key).unwrap()
    }
}

/// The state hash of a replay of the session.
fn replayed(stage: &Stage) -> StateHash {
    let facts = stage.begun.as_ref().unwrap();
    let games = known();
    let mut run = games.find(&facts.game, facts.build).unwrap().begin(&facts.setup).unwrap();
    let mut inputs = sametick_sim::record::TickInputs::new();
    for (tick, rows) in (1..).map(Tick).zip(&stage.rows) {
        inputs.set(tick, rows.iter().map(sametick_lockstep::rows::row_as_bytes));
        run.step(&inputs);
    }
    run.hash()
}

#[test]
fn an_outcome_is_reported_once() {
    let mut stage = Stage::new::<Pong>(None);
    stage.come::<Pong>(1, true);
    stage.run(60);
    let hash = stage.follower.runs[&stage.id()].as_ref().unwrap().hash();
    assert_eq!(hash, replayed(&stage));
    stage.run(20_000);
    let [Told::Ended(key, outcome)] = &stage.told[..] else { panic!("{:?}", stage.told) };
    assert_eq!((key, outcome.scores.len()), (&stage.key, 2));
    assert!(outcome.scores[1].won && outcome.scores[1].points == 5, "{outcome:?}");
    stage.told.clear();
    stage.run(600);
    assert_eq!(stage.told, []);
}

#[test]
fn a_resumed_session_is_replayed_to_its_last_tick() {
    let mut first = Stage::new::<Pong>(None);
    first.come::<Pong>(1, true);
    first.run(1_500);
    let mut kept = Kept::new(first.begun.clone().unwrap(), 5, 0, None);
    first.rows.iter().for_each(|rows| kept.push(rows));
    let mut second = Stage { begun: first.begun, rows: first.rows, ..Stage::new::<Pong>(Some(kept)) };
    second.come::<Pong>(11, true);
    second.run(300);
    let run = second.follower.runs[&second.id()].as_ref().unwrap();
    assert!(run.tick() > Tick(1_500) && run.hash() == replayed(&second));
    second.run(20_000);
    assert!(matches!(&second.told[..], [Told::Ended(..)]), "{:?}", second.told);
}

#[test]
fn a_crash_is_reported_once() {
    let mut stage = Stage::new::<Brittle>(None);
    stage.come::<Brittle>(1, true);
    stage.run(200);
    assert_eq!(stage.told, [Told::Crashed(stage.key.clone())]);
    stage.told.clear();
    stage.run(200);
    assert_eq!(stage.told, []);
    // The next session of that name is another one.
    stage.handle(Input::End(stage.key.clone(), "it has failed"));
    stage.come::<Brittle>(2, true);
    stage.run(200);
    assert_eq!(stage.told, [Told::Crashed(stage.key.clone())]);
}

#[test]
fn sessions_without_assignment_are_not_followed() {
    let mut stage = Stage::new::<Brittle>(None);
    stage.come::<Brittle>(1, false);
    stage.run(200);
    assert!(stage.told.is_empty() && stage.follower.runs.is_empty());
}
