//! Random histories: a session never has an inconsistent state, never loses a seat, and always ends.

use sametick_session::message::{Ending, Phase, Request};
use sametick_session::password::Password;
use sametick_session::session::{Input, Reserve};
use sametick_session::settings::Difficulty;
use sametick_session::ticket::Ticket;
use sametick_sim::{Rng, Seat};
use sametick_wire::Member;
use sametick_wire::identity::{PlayerId, Token};

use crate::stage::{MINUTE, SECOND, Stage, bridge, line, name, pong, seeds, settings};

/// Histories in a normal test run.
const SEEDS: u64 = 1_500;

/// Players who send requests at random.
struct Crowd {
    rng: Rng,
    tickets: Vec<Ticket>,
    tokens: Vec<(PlayerId, Token)>,
    unix_s: u64,
}

impl Crowd {
    fn player(&mut self) -> PlayerId {
        PlayerId(self.rng.below(7).into())
    }

    fn member(&mut self, stage: &Stage) -> Member {
        let members: Vec<Member> = stage.views.keys().copied().collect();
        let stranger = Member(self.rng.below(50));
        if self.rng.chance(1, 10) { stranger } else { self.rng.pick(&members).copied().unwrap_or(stranger) }
    }

    fn request(&mut self) -> Request {
        let seat = Seat(self.rng.below(14) as u16);
        match self.rng.below(14) {
            0..=3 => Request::Take { seat },
            4 => Request::Stand {},
            5 | 6 => Request::Ready { ready: self.rng.chance(4, 5) },
            7 => Request::Rename { name: name("Artemis") },
            8 => Request::Chat { line: line("hello") },
            9 => Request::Start {},
            10 => {
                let mut settings = settings(self.rng.below(4) as u8);
                settings.difficulty = Difficulty::new(self.rng.below(11) as u8 + 1).unwrap();
                Request::Settings { settings }
            }
            11 => Request::Password { password: Password::new(["", "a", "b"][self.rng.below(3) as usize]) },
            12 => match self.rng.below(3) {
                0 => Request::Kick { player: self.player(), ban: self.rng.chance(1, 3) },
                _ => Request::Rematch {},
            },
            _ if self.rng.chance(1, 2) => Request::Leave {},
            _ => Request::Ready { ready: true },
        }
    }

    fn input(&mut self, stage: &mut Stage) -> Input {
        let number = stage.number();
        match self.rng.below(20) {
            0..=2 => Input::Reserve(Reserve {
                ask: number,
                player: self.player(),
                name: name("Anyone"),
                password: Password::new(["", "a", "b"][self.rng.below(3) as usize]),
                seat: self.rng.chance(1, 2).then(|| Seat(self.rng.below(14) as u16)),
                is_maker: self.rng.chance(1, 10),
            }),
            3..=5 if !self.tickets.is_empty() => {
                Input::Arrive(Member(1_000 + number), self.rng.pick(&self.tickets).unwrap().clone())
            }
            6 if !self.tokens.is_empty() => {
                let (player, token) = *self.rng.pick(&self.tokens).unwrap();
                Input::Resume(Member(1_000 + number), player, token)
            }
            7 => Input::Cut(self.member(stage)),
            8 if self.rng.chance(1, 4) => Input::Ended("{}".into()),
            9 if self.rng.chance(1, 6) => Input::Crashed(self.unix_s),
            _ => {
                let member = self.member(stage);
                Input::Say(member, number, self.request())
            }
        }
    }
}

fn history(seed: u64) -> Option<Ending> {
    let mut rng = Rng::new(seed);
    let (plan, groups) = if rng.chance(1, 3) { (pong(), 1) } else { (bridge(), 2) };
    let mut stage = Stage::new(plan, groups, rng.chance(1, 4).then_some("a"));
    if rng.chance(2, 3) && !stage.session.view().locked {
        let members: Vec<Member> = (0..4).map(|player| stage.join(PlayerId(player))).collect();
        for (member, seat) in members.iter().zip(0..) {
            stage.get_ready(*member, seat);
        }
        stage.say(members[0], Request::Start {}).unwrap();
    }
    stage.is_disk_slow = rng.chance(1, 3);
    let mut crowd = Crowd { rng, tickets: Vec::new(), tokens: Vec::new(), unix_s: 1_000 };
    for _ in 0..crowd.rng.below(150) {
        match crowd.rng.below(30) {
            0 => stage.wait(crowd.rng.below(70 * SECOND)),
            1 if crowd.rng.chance(1, 8) => stage.wait(crowd.rng.below(32 * MINUTE)),
            2 if stage.disk.is_some() && crowd.rng.chance(1, 4) => {
                crowd.unix_s += 10;
                let crashed = crowd.rng.chance(2, 3).then_some(crowd.unix_s);
                let seats: Vec<_> =
                    stage.views.keys().filter_map(|member| own_seat(&stage, *member)).collect();
                stage.restart(crowd.rng.below(SECOND), crashed);
                if stage.session.phase() != Phase::Closed {
                    check_kept(&stage, &seats);
                }
            }
            3..=8 => stage.store(),
            _ => {
                let input = crowd.input(&mut stage);
                stage.handle(input);
            }
        }
        let reserved = stage.reserved.drain(..);
        crowd.tickets.extend(reserved.filter_map(|(_, answer)| answer.ok()));
        crowd.tokens.extend(stage.tokens.iter().map(|(player, token)| (*player, *token)));
        crowd.tokens.dedup();
    }
    finish(&mut stage)
}

/// The seat that a member knows of: it has to survive a crash.
fn own_seat(stage: &Stage, member: Member) -> Option<(PlayerId, Option<Seat>)> {
    let player = stage.session.player_of(member)?;
    let person = stage.views[&member].people.iter().find(|person| person.player == player)?;
    Some((player, person.seat))
}

fn check_kept(stage: &Stage, seats: &[(PlayerId, Option<Seat>)]) {
    let people = stage.session.view().people;
    for (player, seat) in seats {
        let kept = people.iter().find(|person| person.player == *player).expect("nobody is forgotten");
        assert_eq!(kept.seat, *seat, "nobody loses a seat");
    }
}

/// All players leave: the session ends by itself, whatever its state.
fn finish(stage: &mut Stage) -> Option<Ending> {
    stage.is_disk_slow = false;
    stage.store();
    if stage.session.phase() == Phase::Running && stage.now.as_micros().is_multiple_of(2) {
        stage.handle(Input::Ended("{}".into()));
    }
    for member in stage.views.keys().copied().collect::<Vec<_>>() {
        stage.handle(Input::Cut(member));
    }
    stage.wait(10 * MINUTE);
    assert_eq!(stage.session.phase(), Phase::Closed);
    assert_eq!((stage.over, stage.wake_at), (stage.session.ending(), None), "and everybody was told");
    assert!(stage.views.is_empty() && stage.players().is_empty());
    stage.over
}

#[test]
fn random_histories_stay_consistent_and_leave_nothing() {
    let mut endings = std::collections::BTreeMap::new();
    for seed in 0..seeds(SEEDS) {
        let ending = std::panic::catch_unwind(|| history(seed));
        let ending = ending.unwrap_or_else(|_| panic!("seed {seed}"));
        *endings.entry(format!("{ending:?}")).or_insert(0) += 1;
    }
    println!("{endings:?}");
    assert!(endings.len() >= 4, "the histories are of many kinds: {endings:?}");
}
