//! One tick of pong: joins and inputs, paddles, and the phases of the game.

use sametick_sim::{BuildId, Game, Inputs, Rng, Tick, TickRate};

use crate::ai::{self, GENTLE_POINTS, Limits};
use crate::ball::{self, Contact, SERVE_SPEED};
use crate::court::{Point, UNIT, Wall};
use crate::input::{Input, Motion};
use crate::setup::{MAX_SCORE, Rules, Setup};
use crate::state::{Ball, Driver, Paddle, Phase, Pong, What};

/// The largest motion of a paddle in a tick: slower than a fast ball at a steep angle, or players would never miss.
pub(crate) const PADDLE_SPEED: i32 = 4 * UNIT;

/// The largest change of its speed in a tick: full speed within four ticks.
pub(crate) const PADDLE_GRIP: i32 = UNIT;

/// How many ticks a second.
pub(crate) const RATE: TickRate = TickRate::hz(60);

/// The countdown before the first serve of a game, and before the next one after a player has joined: three seconds.
pub(crate) const COUNTDOWN_TICKS: u16 = 180;
/// During a game, joins on one seat delay the others at most once in this time: a minute.
pub(crate) const GREETED_TICKS: u16 = 3600;

/// The least time that the ball sticks, so that a button held since the last serve does not serve again at once.
const SERVE_EARLIEST_TICKS: u16 = 20;
/// The time after which a bot serves.
const SERVE_BOT_TICKS: u16 = 50;
/// The time after which the ball is served automatically.
const SERVE_LATEST_TICKS: u16 = 180;
/// The time between a point and the next serve: long enough to see which player made it.
const PAUSE_TICKS: u16 = 60;
/// The least time for which the winner is shown.
const OVER_TICKS: u16 = 60;
/// Without players, bots begin a game among themselves after this time.
const IDLE_TICKS: u16 = 300;
/// A game that is played once begins after this time: long enough for players who join together.
const ONCE_TICKS: u16 = 120;
/// A rally of a whole minute is a let, so that even perfect players cannot play one for ever.
pub const RALLY_MAX_TICKS: u16 = 3600;

impl Game for Pong {
    const NAME: &'static str = "pong";
    const RATE: TickRate = RATE;
    const BUILD: BuildId = sametick_sim::build_id!();
    type Setup = Setup;
    type Input = Input;

    fn new(setup: &Setup) -> Pong {
        let rules = Rules::of(setup);
        let mut rng = Rng::new(setup.seed);
        let server = draw_server(&rules, &mut rng);
        let mut pong = Pong {
            tick: Tick::ZERO,
            rules,
            phase: Phase::Waiting { server, ticks: 0 },
            ball: Ball::default(),
            countdown: 0,
            paddles: [Paddle::unused(); 4],
            events: [None; 4],
            rng,
        };
        rules.court().open_walls().for_each(|wall| pong.vacate(wall));
        pong
    }

    fn step(&mut self, inputs: &Inputs<Input>) {
        self.tick = Tick(self.tick.0.saturating_add(1));
        let walls = self.rules.court().open_walls();
        for wall in walls.clone() {
            let pressed = self.sit(wall, inputs);
            self.press(wall, pressed);
            self.drive(wall);
        }
        self.go_on();
        for wall in walls.filter(|wall| inputs.get(wall.seat()).is_some_and(|row| row.left)) {
            self.vacate(wall);
        }
    }

    /// The same motion, without buttons: a repeated button would serve twice.
    fn guess(last: &Input) -> Input {
        Input::moving(last.motion())
    }
}

/// Players on their seats.
impl Pong {
    /// Handles the player at a wall. Returns the player's input.
    fn sit(&mut self, wall: Wall, inputs: &Inputs<Input>) -> Input {
        let paddle = self.paddle_mut(wall);
        paddle.greeted = paddle.greeted.saturating_sub(1);
        let Some(row) = inputs.get(wall.seat()) else {
            if paddle.has_player() {
                self.vacate(wall);
            }
            return Input::NONE;
        };
        if row.joined || !paddle.has_player() {
            paddle.driver = Driver::Player { held: Motion::Still };
            (paddle.ready, paddle.seen) = (false, 0);
            self.greet(wall);
        }
        if let Some(input) = row.input {
            self.paddle_mut(wall).driver = Driver::Player { held: input.motion() };
        }
        row.input.unwrap_or(Input::NONE)
    }

    /// A player has joined: the next serve waits for a countdown. Joins on one seat delay the others only now and then,
    /// or a player could keep them from playing by joining again and again.
    fn greet(&mut self, wall: Wall) {
        let mut others = self.rules.court().open_walls().filter(|other| *other != wall);
        let is_alone = !others.any(|other| self.paddle(other).has_player());
        if is_alone || self.paddle(wall).greeted == 0 {
            self.countdown = COUNTDOWN_TICKS;
            self.paddle_mut(wall).greeted = GREETED_TICKS;
        }
    }

    /// The seat is empty: a bot continues from the position and motion of the paddle.
    fn vacate(&mut self, wall: Wall) {
        let bots = self.rules.bots;
        let paddle = self.paddle_mut(wall);
        paddle.driver = if bots { Driver::Bot { aim: paddle.at, look_in: 0 } } else { Driver::Nobody };
        paddle.ready = false;
    }

    /// Handles buttons, depending on the phase.
    fn press(&mut self, wall: Wall, input: Input) {
        match self.phase {
            Phase::Waiting { .. } if input.serves() => self.paddle_mut(wall).ready = true,
            Phase::Over { .. } if input.wants_rematch() => self.paddle_mut(wall).ready = true,
            Phase::Serving { server, ticks }
                if server == wall
                    && input.serves()
                    && ticks >= SERVE_EARLIEST_TICKS
                    && self.countdown == 0 =>
            {
                self.paddle_mut(wall).ready = true;
            }
            _ => {}
        }
    }

    fn drive(&mut self, wall: Wall) {
        let court = self.rules.court();
        let mut paddle = *self.paddle(wall);
        let (motion, fastest) = match paddle.driver {
            Driver::Nobody => (Motion::Still, PADDLE_SPEED),
            Driver::Player { held } => (held, PADDLE_SPEED),
            Driver::Bot { .. } => {
                let limits = Limits::of(self.rules.skill, self.gentleness());
                let (motion, driver) = ai::think(wall, &paddle, self.ball, court, &limits, &mut self.rng);
                paddle.driver = driver;
                (motion, limits.speed)
            }
        };
        let change = motion.sign() * fastest - paddle.speed;
        paddle.speed += change.clamp(-PADDLE_GRIP, PADDLE_GRIP);
        let (place, reach) = (paddle.at + paddle.speed, court.reach(wall));
        paddle.at = place.clamp(-reach, reach);
        if place != paddle.at {
            paddle.speed = 0;
        }
        *self.paddle_mut(wall) = paddle;
    }

    /// The gentleness of bots: set by the player who has seen the fewest points.
    fn gentleness(&self) -> u8 {
        let walls = self.rules.court().open_walls().map(|wall| self.paddle(wall));
        let newest = walls.filter(|paddle| paddle.has_player()).map(|paddle| paddle.seen).min();
        GENTLE_POINTS - newest.unwrap_or(GENTLE_POINTS)
    }

    /// Whether a ball may be served: every wall has a player or bot to defend it.
    fn is_manned(&self) -> bool {
        self.rules.bots || self.is_full()
    }

    fn is_full(&self) -> bool {
        self.rules.court().open_walls().all(|wall| self.paddle(wall).has_player())
    }

    /// Whether all present players want to continue. Without players, bots do after a while.
    fn is_agreed(&self, ticks: u16) -> bool {
        let mut present = self
            .rules
            .court()
            .open_walls()
            .map(|wall| self.paddle(wall))
            .filter(|paddle| paddle.has_player());
        match present.next() {
            Some(first) => first.ready && present.all(|paddle| paddle.ready),
            None => self.rules.bots && ticks >= IDLE_TICKS,
        }
    }
}

/// The course of a game.
impl Pong {
    fn go_on(&mut self) {
        match self.phase {
            Phase::Waiting { server, ticks } => self.wait(server, ticks.saturating_add(1)),
            Phase::Serving { server, ticks } => self.hold(server, ticks.saturating_add(1)),
            Phase::Rally { .. } => self.rally(),
            Phase::Pause { server, ticks } => self.pause(server, ticks.saturating_add(1)),
            Phase::Over { winner, ticks } => self.celebrate(winner, ticks.saturating_add(1)),
        }
    }

    fn enter(&mut self, phase: Phase) {
        self.phase = phase;
        self.paddles.iter_mut().for_each(|paddle| paddle.ready = false);
    }

    fn wait(&mut self, server: Wall, ticks: u16) {
        let is_time = self.rules.once && ticks >= ONCE_TICKS;
        let begin = self.is_full() || (self.is_manned() && (is_time || self.is_agreed(ticks)));
        self.phase = Phase::Waiting { server, ticks };
        if begin {
            self.countdown = COUNTDOWN_TICKS;
            self.take_ball(server);
        }
    }

    /// Goes on to the next serve, or waits for the players it needs.
    fn take_ball(&mut self, server: Wall) {
        if self.is_manned() {
            self.enter(Phase::Serving { server, ticks: 0 });
            self.ball = Ball { at: self.front(server), motion: Point::ZERO };
        } else {
            self.enter(Phase::Waiting { server, ticks: 0 });
            self.ball = Ball::default();
        }
    }

    fn front(&self, wall: Wall) -> Point {
        self.rules.court().front(wall, self.paddle(wall).at)
    }

    fn hold(&mut self, server: Wall, ticks: u16) {
        if !self.is_manned() {
            return self.take_ball(server);
        }
        self.ball.at = self.front(server);
        if self.countdown > 0 {
            self.countdown -= 1;
            return;
        }
        self.phase = Phase::Serving { server, ticks };
        let paddle = *self.paddle(server);
        let latest = if paddle.has_player() { SERVE_LATEST_TICKS } else { SERVE_BOT_TICKS };
        if !paddle.ready && ticks < latest {
            return;
        }
        let slant = self.rng.between(-SERVE_SPEED / 2, SERVE_SPEED / 2);
        self.ball = ball::serve(self.rules.court(), server, &paddle, slant);
        let rival = self.after(server);
        self.enter(Phase::Rally { server, striker: server, rival, hits: 0, ticks: 0 });
        self.note(What::Served(server));
    }

    /// The next player round the table.
    fn after(&self, wall: Wall) -> Wall {
        let next = (wall.index() + 1) % usize::from(self.rules.players);
        Wall::ALL[next]
    }

    fn rally(&mut self) {
        let mut ball = self.ball;
        let (court, paddles) = (self.rules.court(), self.paddles);
        ball::fly(&mut ball, court, &paddles, |ball, contact| {
            self.ball = ball;
            self.touch(contact);
        });
        self.ball = ball;
        if let Phase::Rally { server, striker, rival, hits, ticks } = self.phase {
            let ticks = ticks.saturating_add(1);
            self.phase = Phase::Rally { server, striker, rival, hits, ticks };
            if ticks >= RALLY_MAX_TICKS {
                self.note(What::Let);
                self.ball.motion = Point::ZERO;
                self.enter(Phase::Pause { server, ticks: 0 });
            }
        }
    }

    fn touch(&mut self, contact: Contact) {
        let Phase::Rally { server, striker, rival, hits, ticks } = self.phase else {
            return;
        };
        match contact {
            Contact::Bounce(wall) => self.note(What::Bounced(wall)),
            Contact::Hit(wall) => {
                let (striker, rival) = if wall == striker { (striker, rival) } else { (wall, striker) };
                self.phase = Phase::Rally { server, striker, rival, hits: hits.saturating_add(1), ticks };
                self.note(What::Hit(wall));
            }
            Contact::Lost(wall) => self.award(if wall == striker { rival } else { striker }, wall),
        }
    }

    fn award(&mut self, scorer: Wall, loser: Wall) {
        let paddle = self.paddle_mut(scorer);
        paddle.score = paddle.score.saturating_add(1).min(MAX_SCORE);
        self.note(What::Point(scorer));
        for paddle in &mut self.paddles {
            paddle.seen = if paddle.has_player() { (paddle.seen + 1).min(GENTLE_POINTS) } else { 0 };
        }
        if self.has_won(scorer) {
            self.note(What::Won(scorer));
            self.enter(Phase::Over { winner: scorer, ticks: 0 });
        } else {
            self.enter(Phase::Pause { server: loser, ticks: 0 });
        }
    }

    fn has_won(&self, wall: Wall) -> bool {
        let score = self.paddle(wall).score;
        let others = self.rules.court().open_walls().filter(|other| *other != wall);
        let best = others.map(|other| self.paddle(other).score).max().unwrap_or(0);
        let ahead = score >= self.rules.points && score >= best.saturating_add(self.rules.lead);
        ahead || score >= MAX_SCORE
    }

    fn pause(&mut self, server: Wall, ticks: u16) {
        ball::roll_out(&mut self.ball, self.rules.court());
        self.phase = Phase::Pause { server, ticks };
        if ticks >= PAUSE_TICKS {
            self.take_ball(server);
        }
    }

    fn celebrate(&mut self, winner: Wall, ticks: u16) {
        ball::roll_out(&mut self.ball, self.rules.court());
        self.phase = Phase::Over { winner, ticks };
        if !self.rules.once && ticks >= OVER_TICKS && self.is_agreed(ticks) {
            self.paddles.iter_mut().for_each(|paddle| paddle.score = 0);
            self.countdown = COUNTDOWN_TICKS;
            let server = draw_server(&self.rules, &mut self.rng);
            self.take_ball(server);
        }
    }
}

fn draw_server(rules: &Rules, rng: &mut Rng) -> Wall {
    Wall::ALL[rng.below(u64::from(rules.players)) as usize]
}
