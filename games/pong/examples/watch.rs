//! Bots play each other in the terminal: `cargo run -p sametick-pong --example watch -- --players 4 --seconds 60`.
//!
//! On a terminal the court is drawn; in a pipe there is a line for every point.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "an example for people keeps real time; the game itself gets none"
)]

use std::io::{self, IsTerminal, Write};
use std::thread;
use std::time::{Duration, Instant};

use sametick_pong::{Driver, Phase, Pong, Setup, Skill, View, Wall, What};
use sametick_sim::{Game, Inputs, StateHash, Tick};

const HELP: &str = "\
Watch bots play pong.

Usage: cargo run -p sametick-pong --example watch -- [OPTIONS]

  --seconds N   how long to play (30)
  --players N   2, 3 or 4 (2)
  --points N    points that win a game (11)
  --skill S     easy, normal or hard (normal)
  --seed N      another seed is another session (1)
  --fast        one line for every point, as fast as it goes
";

struct Options {
    seconds: u64,
    fast: bool,
    setup: Setup,
}

fn main() -> io::Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match options(&words) {
        Ok(options) => watch(&options),
        Err(message) => {
            eprintln!("{message}");
            std::process::exit(if message == HELP { 0 } else { 2 })
        }
    }
}

fn options(words: &[String]) -> Result<Options, String> {
    let mut options = Options { seconds: 30, fast: false, setup: Setup { seed: 1, ..Setup::default() } };
    let mut words = words.iter();
    while let Some(word) = words.next() {
        if word == "--fast" {
            options.fast = true;
            continue;
        }
        let known = ["--seconds", "--players", "--points", "--seed", "--skill"].contains(&word.as_str());
        let Some(value) = words.next().filter(|_| known) else {
            let help = word == "--help" || word == "-h";
            return Err(if help { HELP.into() } else { format!("`{word}` is not understood\n\n{HELP}") });
        };
        let number = || value.parse::<u64>().map_err(|_| format!("{word} takes a number, not `{value}`"));
        let small = || number().map(|number| u8::try_from(number).unwrap_or(u8::MAX));
        match word.as_str() {
            "--seconds" => options.seconds = number()?,
            "--players" => options.setup.players = small()?,
            "--points" => options.setup.points = small()?,
            "--seed" => options.setup.seed = number()?,
            _ => options.setup.skill = skill(value)?,
        }
    }
    Ok(options)
}

fn skill(word: &str) -> Result<Skill, String> {
    match word {
        "easy" => Ok(Skill::Easy),
        "normal" => Ok(Skill::Normal),
        "hard" => Ok(Skill::Hard),
        _ => Err(format!("--skill is easy, normal or hard, not `{word}`")),
    }
}

fn watch(options: &Options) -> io::Result<()> {
    let mut out = io::stdout().lock();
    let drawn = out.is_terminal() && !options.fast;
    let mut pong = Pong::new(&options.setup);
    let nobody = Inputs::new();
    let start = Instant::now();
    if drawn {
        write!(out, "\x1b[2J")?;
    }
    // No player joins, so the five seconds in which bots wait are skipped.
    while matches!(pong.phase, Phase::Waiting { .. }) {
        pong.step(&nobody);
    }
    let first = pong.tick;
    while pong.tick.ticks_since(first) < u32::try_from(options.seconds).unwrap_or(u32::MAX).saturating_mul(60)
    {
        let before = pong.tick;
        pong.step(&nobody);
        if !drawn {
            tell(&mut out, &pong, before)?;
        } else if pong.tick.0.is_multiple_of(2) {
            let due = Duration::from_micros(Pong::RATE.due_micros(pong.tick - first.0));
            thread::sleep(due.saturating_sub(start.elapsed()));
            out.write_all(frame(&pong).as_bytes())?;
            out.flush()?;
        }
    }
    let ticks = pong.tick.ticks_since(first);
    writeln!(out, "{ticks} ticks in {:.2?}, state {}", start.elapsed(), StateHash::of(&pong))
}

/// One line for every point and every game.
fn tell(out: &mut impl Write, pong: &Pong, since: Tick) -> io::Result<()> {
    for event in pong.events_since(since) {
        let seconds = event.tick.0 / 60;
        let time = format!("{:>3}:{:02}", seconds / 60, seconds % 60);
        match event.what {
            What::Point(wall) => writeln!(out, "{time}  {:7} {}", format!("{wall:?}"), scores(pong))?,
            What::Let => writeln!(out, "{time}  let")?,
            What::Won(wall) => writeln!(out, "{time}  {wall:?} wins\n")?,
            What::Served(_) | What::Hit(_) | What::Bounced(_) => {}
        }
    }
    Ok(())
}

fn scores(pong: &Pong) -> String {
    let score = |wall: Wall| pong.paddle(wall).score.to_string();
    pong.rules.court().open_walls().map(score).collect::<Vec<_>>().join(" : ")
}

/// A character is one column wide and two rows high: each is drawn as two halves.
const UNITS_PER_CELL: f32 = 4.0;

/// The colours of left, right, top and bottom, and of the ball.
const COLOURS: [u8; 4] = [81, 215, 156, 213];
const WHITE: u8 = 231;
const GREY: u8 = 238;

struct Canvas {
    columns: usize,
    rows: usize,
    cells: Vec<Option<u8>>,
}

impl Canvas {
    fn of(view: &View) -> Canvas {
        let [columns, rows] = view.half.map(|half| (2.0 * half / UNITS_PER_CELL) as usize);
        Canvas { columns, rows, cells: vec![None; columns * rows] }
    }

    /// Fills a rectangle, cell by cell, each if its middle lies inside.
    fn fill(&mut self, view: &View, centre: [f32; 2], half: [f32; 2], colour: u8) {
        for row in 0..self.rows {
            for column in 0..self.columns {
                let x = (column as f32 + 0.5) * UNITS_PER_CELL - view.half[0];
                let y = (row as f32 + 0.5) * UNITS_PER_CELL - view.half[1];
                if (x - centre[0]).abs() <= half[0] && (y - centre[1]).abs() <= half[1] {
                    self.cells[row * self.columns + column] = Some(colour);
                }
            }
        }
    }

    fn text(&self) -> String {
        let cell = |row: usize, column: usize| self.cells.get(row * self.columns + column).copied().flatten();
        let mut text = String::new();
        for row in (0..self.rows).step_by(2) {
            for column in 0..self.columns {
                text += &match (cell(row, column), cell(row + 1, column)) {
                    (None, None) => " ".to_owned(),
                    (Some(upper), None) => format!("\x1b[38;5;{upper}m▀\x1b[0m"),
                    (None, Some(lower)) => format!("\x1b[38;5;{lower}m▄\x1b[0m"),
                    (Some(upper), Some(lower)) => format!("\x1b[38;5;{upper};48;5;{lower}m▀\x1b[0m"),
                };
            }
            text += "\x1b[K\n";
        }
        text
    }
}

fn frame(pong: &Pong) -> String {
    let view = View::of(pong);
    let mut canvas = Canvas::of(&view);
    let court = pong.rules.court();
    for (wall, side) in [(Wall::Top, -1.0), (Wall::Bottom, 1.0)] {
        if !court.is_open(wall) {
            canvas.fill(&view, [0.0, side * view.half[1]], [view.half[0], 3.0], GREY);
        }
    }
    for dash in (-14..=14).step_by(4).filter(|_| pong.rules.players == 2) {
        canvas.fill(&view, [2.0, dash as f32 * 8.0], [2.0, 7.0], GREY);
    }
    for (bar, colour) in view.paddles.iter().zip(COLOURS) {
        if let Some(bar) = bar {
            canvas.fill(&view, bar.centre, bar.half, colour);
        }
    }
    if let Some(ball) = view.ball {
        canvas.fill(&view, ball, [view.radius; 2], WHITE);
    }
    format!("\x1b[H{}\n\x1b[K\n{}", headline(pong), canvas.text())
}

fn headline(pong: &Pong) -> String {
    let one = |wall: Wall| {
        let paddle = pong.paddle(wall);
        let who = if matches!(paddle.driver, Driver::Bot { .. }) { "bot" } else { "player" };
        format!("\x1b[38;5;{}m{who} {:>2}\x1b[0m", COLOURS[wall.index()], paddle.score)
    };
    let scores: Vec<String> = pong.rules.court().open_walls().map(one).collect();
    let phase = match pong.phase {
        Phase::Waiting { .. } => "waiting".to_owned(),
        Phase::Serving { server, .. } => format!("{server:?} serves"),
        Phase::Rally { hits, .. } => format!("{hits} hits"),
        Phase::Pause { .. } => "point".to_owned(),
        Phase::Over { winner, .. } => format!("{winner:?} wins"),
    };
    format!("  {}   {phase}\x1b[K", scores.join("   "))
}
