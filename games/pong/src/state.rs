//! The state of a game of pong. The fields are public for reading; only a step should change them.

use core::fmt;

use postcard_schema::Schema;
use sametick_sim::{Rng, Seat, Tick};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::ai::GENTLE_POINTS;
use crate::ball::MAX_SPEED;
use crate::court::{Point, Wall};
use crate::input::Motion;
use crate::setup::{MAX_SCORE, Rules};
use crate::step::{COUNTDOWN_TICKS, GREETED_TICKS, PADDLE_SPEED, RATE};

/// The state of a session of pong.
///
/// A deserialised state has been checked: whatever its source, stepping it does not panic.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Schema)]
#[serde(remote = "Self")]
pub struct Pong {
    /// The number of steps so far.
    pub tick: Tick,
    /// The rules.
    pub rules: Rules,
    /// The phase of the game.
    pub phase: Phase,
    /// The ball, which is in play only in a rally.
    pub ball: Ball,
    /// The remaining ticks of the countdown before the next serve. They pass while the ball is held.
    pub countdown: u16,
    /// The paddles, by wall. Those of solid walls are unused.
    pub paddles: [Paddle; 4],
    /// The last events, the oldest first: for sounds and effects, see [`Pong::events_since`].
    pub events: [Option<Event>; 4],
    /// The source of all randomness.
    pub rng: Rng,
}

/// The phase of the game. Every phase counts its own ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Schema)]
pub enum Phase {
    /// Waiting until enough players are present and ready.
    Waiting {
        /// The next server.
        server: Wall,
        /// The ticks so far.
        ticks: u16,
    },
    /// The ball sticks to a paddle.
    Serving {
        /// The server.
        server: Wall,
        /// The ticks so far.
        ticks: u16,
    },
    /// The ball is in play.
    Rally {
        /// The server.
        server: Wall,
        /// The player who touched the ball last.
        striker: Wall,
        /// The player who touched it before that, or would have been next.
        rival: Wall,
        /// The number of returns.
        hits: u16,
        /// The ticks so far.
        ticks: u16,
    },
    /// A short pause after a ball was lost, or after a let.
    Pause {
        /// The next server.
        server: Wall,
        /// The ticks so far.
        ticks: u16,
    },
    /// The game is won.
    Over {
        /// The winner.
        winner: Wall,
        /// The ticks so far.
        ticks: u16,
    },
}

/// The ball.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Schema)]
pub struct Ball {
    /// The position of its centre.
    pub at: Point,
    /// Its motion in a tick.
    pub motion: Point,
}

/// One player's paddle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Schema)]
pub struct Paddle {
    /// The position of its middle, along the wall.
    pub at: i32,
    /// Its motion in a tick.
    pub speed: i32,
    /// What moves it.
    pub driver: Driver,
    /// Whether its player wants the game to continue, where the game waits for that.
    pub ready: bool,
    /// The points of this game.
    pub score: u8,
    /// The number of points made since its player joined, for the strength of bots.
    pub seen: u8,
    /// The ticks until another join on this seat may delay the others again.
    pub greeted: u16,
}

/// What moves a paddle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Schema)]
pub enum Driver {
    /// Nothing: it stands still.
    Nobody,
    /// The player on the seat.
    Player {
        /// The motion that continues until another one arrives.
        held: Motion,
    },
    /// A bot, because the seat is empty.
    Bot {
        /// The position it aims for.
        aim: i32,
        /// The ticks until it looks again.
        look_in: u8,
    },
}

/// Something to hear or see.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Schema)]
pub struct Event {
    /// The tick it happened in.
    pub tick: Tick,
    /// The position of the ball.
    pub at: Point,
    /// The kind of event.
    pub what: What,
}

/// The kinds of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Schema)]
pub enum What {
    /// The ball was let go from this paddle.
    Served(Wall),
    /// This paddle returned the ball.
    Hit(Wall),
    /// The ball bounced off this solid wall.
    Bounced(Wall),
    /// This player made a point.
    Point(Wall),
    /// The rally was too long, and does not count.
    Let,
    /// This player won the game.
    Won(Wall),
}

impl Pong {
    /// The points of a seat; none for spectators' seats.
    pub fn score(&self, seat: Seat) -> Option<u8> {
        let wall = Wall::of(seat).filter(|wall| self.rules.court().is_open(*wall))?;
        Some(self.paddle(wall).score)
    }

    /// The 3, 2 or 1 to show while the ball is held and must not be served yet.
    pub const fn count(&self) -> Option<u8> {
        match self.phase {
            Phase::Serving { .. } if self.countdown > 0 => {
                Some(self.countdown.div_ceil(RATE.per_second() as u16) as u8)
            }
            _ => None,
        }
    }

    /// The events after `tick`, the oldest first; the last four if there were more.
    ///
    /// A screen that shows a state after one of tick N asks for the events since N.
    pub fn events_since(&self, tick: Tick) -> impl Iterator<Item = &Event> {
        self.events.iter().flatten().filter(move |event| event.tick > tick)
    }

    /// The paddle at a wall.
    pub const fn paddle(&self, wall: Wall) -> &Paddle {
        &self.paddles[wall.index()]
    }

    pub(crate) const fn paddle_mut(&mut self, wall: Wall) -> &mut Paddle {
        &mut self.paddles[wall.index()]
    }

    pub(crate) fn note(&mut self, what: What) {
        self.events.rotate_left(1);
        self.events[3] = Some(Event { tick: self.tick, at: self.ball.at, what });
    }

    /// Checks that all values are within the bounds that a step keeps.
    pub fn check(&self) -> Result<(), BadState> {
        if !self.rules.are_in_range() {
            return Err(BadState::Rules);
        }
        if !self.phase_fits() || self.countdown > COUNTDOWN_TICKS {
            return Err(BadState::Phase);
        }
        if !self.ball_fits() {
            return Err(BadState::Ball);
        }
        match Wall::ALL.into_iter().find(|wall| !self.paddle_fits(*wall)) {
            Some(wall) => Err(BadState::Paddle(wall)),
            None => Ok(()),
        }
    }

    fn phase_fits(&self) -> bool {
        let open = |wall| self.rules.court().is_open(wall);
        match self.phase {
            Phase::Waiting { server, .. } | Phase::Serving { server, .. } | Phase::Pause { server, .. } => {
                open(server)
            }
            Phase::Rally { server, striker, rival, .. } => {
                open(server) && open(striker) && open(rival) && striker != rival
            }
            Phase::Over { winner, .. } => open(winner),
        }
    }

    fn ball_fits(&self) -> bool {
        let court = self.rules.court();
        let Ball { at, motion } = self.ball;
        let limit = |wall| match self.phase {
            Phase::Pause { .. } | Phase::Over { .. } => court.edge(wall),
            _ => court.line(wall),
        };
        let inside =
            Wall::ALL.into_iter().all(|wall| at.on(wall.axis()).saturating_mul(wall.side()) <= limit(wall));
        inside && motion.length() <= MAX_SPEED
    }

    fn paddle_fits(&self, wall: Wall) -> bool {
        let court = self.rules.court();
        let paddle = self.paddle(wall);
        let within = |number: i32, bound: i32| (-bound..=bound).contains(&number);
        let aim = match paddle.driver {
            Driver::Bot { aim, .. } => aim,
            Driver::Nobody | Driver::Player { .. } => 0,
        };
        let used = court.is_open(wall) || *paddle == Paddle::unused();
        used && within(paddle.at, court.reach(wall))
            && within(paddle.speed, PADDLE_SPEED)
            && within(aim, court.reach(wall))
            && paddle.score <= MAX_SCORE
            && paddle.seen <= GENTLE_POINTS
            && paddle.greeted <= GREETED_TICKS
    }
}

impl Paddle {
    pub(crate) const fn unused() -> Paddle {
        Paddle { at: 0, speed: 0, driver: Driver::Nobody, ready: false, score: 0, seen: 0, greeted: 0 }
    }

    /// Whether a player moves it.
    pub const fn has_player(&self) -> bool {
        matches!(self.driver, Driver::Player { .. })
    }
}

impl Serialize for Pong {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // `remote = "Self"` makes the derived code a function of the type, so that reading can check afterwards.
        Pong::serialize(self, serializer)
    }
}

impl<'de> Deserialize<'de> for Pong {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Pong, D::Error> {
        let pong = Pong::deserialize(deserializer)?;
        pong.check().map_err(de::Error::custom)?;
        Ok(pong)
    }
}

/// Why a state is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadState {
    /// Players, points or lead are out of range.
    Rules,
    /// A wall without a player is named, or the countdown is too long.
    Phase,
    /// The ball is outside, or too fast.
    Ball,
    /// A paddle is off its wall, too fast, or has too many points.
    Paddle(Wall),
}

impl fmt::Display for BadState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BadState::Rules => f.write_str("players, points or lead are out of range"),
            BadState::Phase => {
                f.write_str("the phase names a wall that nobody defends, or the countdown is too long")
            }
            BadState::Ball => f.write_str("the ball is outside the court, or too fast"),
            BadState::Paddle(wall) => write!(f, "the paddle at {wall:?} is out of bounds"),
        }
    }
}

impl core::error::Error for BadState {}
