//! Composes the screen of a player: scores, the phase, the court, the figures and the keys.

use sametick_client::Status;
use sametick_lockstep::diagnostics::{Diagnostics, Level};
use sametick_pong::{Driver, Phase, Pong, Wall, What};
use sametick_sim::{Seat, Tick};

use super::court::{self, Place, Side};
use super::frame::{Frame, Ink, Palette, shortened, width, wrapped};
use super::keys::goes_sideways;

/// The smallest screen on which everything fits.
pub const MIN_SIZE: (u16, u16) = (60, 20);

/// The largest width of the panel of figures: the longest reading.
const PANEL_WIDTH: usize = 52;

/// How many lines of the panel the verdict has: most fit.
const VERDICT_LINES: usize = 2;

/// How much of a name is shown when four share a line.
const NAME_WIDTH: usize = 9;

/// The content of a screen.
#[derive(Clone, Copy, Debug)]
pub struct Scene<'a> {
    /// The relay's URL.
    pub relay: &'a str,
    /// The session's name.
    pub session: &'a str,
    /// The player's name.
    pub name: &'a str,
    /// Whether the terminal reports key releases.
    pub tells_releases: bool,
    /// The state of the client.
    pub status: &'a Status,
    /// The player's seat.
    pub seat: Option<Seat>,
    /// The state on screen.
    pub shown: Option<(Tick, &'a Pong)>,
    /// The confirmed state.
    pub confirmed: Option<(Tick, &'a Pong)>,
    /// Whether the confirmed state is drawn as well.
    pub ghost: bool,
    /// The link's round-trip time.
    pub rtt_us: Option<u64>,
    /// Own inputs that came too late.
    pub omissions: u32,
    /// The figures, if they are shown.
    pub diagnostics: Option<&'a Diagnostics>,
    /// A note that is shown for a moment in place of the phase.
    pub note: Option<&'a str>,
}

impl Scene<'_> {
    /// The wall that the player defends.
    fn own(&self) -> Option<Wall> {
        own_wall(self.shown?.1, self.seat)
    }

    /// The name of the player at a wall. Other players have none: a relay does not pass names on.
    fn who(&self, pong: &Pong, wall: Wall) -> &str {
        match pong.paddle(wall).driver {
            _ if self.own() == Some(wall) => self.name,
            Driver::Player { .. } => "player",
            Driver::Bot { .. } => "bot",
            Driver::Nobody => "nobody",
        }
    }

    fn headline(&self, pong: &Pong) -> (String, Ink) {
        match self.status {
            Status::Stalled { .. } => return ("Waiting for the relay…".into(), Ink::Alarm),
            Status::Connecting | Status::Joining => return ("Finding the way back…".into(), Ink::Alarm),
            Status::Lost { why, .. } => return (format!("Connection lost: {why}"), Ink::Alarm),
            Status::CatchingUp => return ("Catching up…".into(), Ink::Alarm),
            _ => {}
        }
        let own = self.own();
        let is_ready = own.is_some_and(|own| pong.paddle(own).ready);
        match pong.phase {
            Phase::Waiting { .. } if is_ready => ("Ready. Waiting for the others.".into(), Ink::Text),
            Phase::Waiting { .. } if own.is_some() && pong.rules.bots => {
                (format!("{}. Space begins, with bots for the others.", present(pong)), Ink::Strong)
            }
            Phase::Waiting { .. } => (format!("{}. Waiting for players.", present(pong)), Ink::Text),
            Phase::Serving { server, .. } if pong.count().is_some() => {
                (self.countdown(pong, server), Ink::Strong)
            }
            Phase::Serving { server, .. } if own == Some(server) => {
                ("Your serve: space lets the ball go.".into(), Ink::Strong)
            }
            Phase::Serving { server, .. } => (format!("{} serves.", self.player_at(pong, server)), Ink::Text),
            Phase::Rally { hits: 0, .. } => (String::new(), Ink::Text),
            Phase::Rally { hits, .. } => (format!("{hits} hit{}", plural(hits)), Ink::Faint),
            Phase::Pause { .. } => self.last_point(pong),
            Phase::Over { winner, .. } => {
                let won = if own == Some(winner) {
                    "You win!".into()
                } else {
                    format!("{} wins.", self.player_at(pong, winner))
                };
                match own {
                    None => (won, Ink::Strong),
                    Some(_) if is_ready => (format!("{won} Waiting for the others' rematch."), Ink::Strong),
                    Some(_) => (format!("{won} Space for a rematch."), Ink::Strong),
                }
            }
        }
    }

    fn countdown(&self, pong: &Pong, server: Wall) -> String {
        let count = pong.count().unwrap_or_default();
        match self.own() {
            Some(own) if own == server => format!("Get ready: you serve in {count}…"),
            _ => format!("Get ready: {} serves in {count}…", self.player_at(pong, server)),
        }
    }

    fn last_point(&self, pong: &Pong) -> (String, Ink) {
        let last = pong.events.iter().rev().flatten().find_map(|event| match event.what {
            What::Point(wall) => Some(Some(wall)),
            What::Let => Some(None),
            _ => None,
        });
        match last {
            Some(Some(wall)) if self.own() == Some(wall) => ("Your point.".into(), Ink::Strong),
            Some(Some(wall)) => (format!("Point for {}.", self.player_at(pong, wall)), Ink::Of(wall)),
            Some(None) => ("A rally of a whole minute: let, served again.".into(), Ink::Text),
            None => (String::new(), Ink::Text),
        }
    }

    /// The player at a wall, with the wall's side: there may be several bots.
    fn player_at(&self, pong: &Pong, wall: Wall) -> String {
        let side = Side::of(self.own());
        format!("{} {}", arrow(side.place(wall)), shortened(self.who(pong, wall), 20))
    }
}

/// The wall that the player on this seat defends.
pub fn own_wall(pong: &Pong, seat: Option<Seat>) -> Option<Wall> {
    Wall::of(seat?).filter(|wall| pong.rules.court().is_open(*wall))
}

fn present(pong: &Pong) -> String {
    let players = pong.rules.court().open_walls().filter(|wall| pong.paddle(*wall).has_player()).count();
    format!("{players} of {} here", pong.rules.players)
}

fn plural(number: u16) -> &'static str {
    if number == 1 { "" } else { "s" }
}

fn arrow(place: Wall) -> char {
    match place {
        Wall::Left => '←',
        Wall::Right => '→',
        Wall::Top => '↑',
        Wall::Bottom => '↓',
    }
}

/// Draws a scene on a screen of this size.
pub fn draw(scene: &Scene<'_>, (columns, rows): (u16, u16), palette: Palette) -> Frame {
    let mut frame = Frame::new(columns, rows);
    if columns < MIN_SIZE.0 || rows < MIN_SIZE.1 {
        let (width, height) = MIN_SIZE;
        let text = format!(
            "This window has {columns}×{rows} characters; pong needs {width}×{height}. Please make it larger, or press q."
        );
        draw_in_middle(&mut frame, &text);
        return frame;
    }
    match scene.shown {
        None => draw_in_middle(&mut frame, &beginning(scene)),
        Some((_, pong)) => draw_game(&mut frame, scene, pong, palette),
    }
    if let Some(diagnostics) = scene.diagnostics {
        draw_panel(&mut frame, diagnostics);
    }
    draw_status(&mut frame, scene);
    draw_keys(&mut frame, scene);
    frame
}

fn beginning(scene: &Scene<'_>) -> String {
    let (relay, session) = (scene.relay, scene.session);
    match scene.status {
        Status::Connecting | Status::Lost { .. } => format!("Calling {relay} …"),
        _ => format!("Waiting to be let into session {session} …"),
    }
}

fn draw_in_middle(frame: &mut Frame, text: &str) {
    let lines = wrapped(text, frame.width().saturating_sub(2));
    let top = frame.height().saturating_sub(lines.len()) / 2;
    for (number, line) in lines.iter().enumerate() {
        frame.write_centred(top + number, line, Ink::Text);
    }
}

fn draw_game(frame: &mut Frame, scene: &Scene<'_>, pong: &Pong, palette: Palette) {
    draw_scores(frame, scene, pong);
    let (headline, ink) = scene.headline(pong);
    frame.write_centred(1, &headline, ink);
    let mut place = Place::within(pong, frame.width(), frame.height() - 4);
    place.top = 2 + (frame.height() - 4 - place.height) / 2;
    if scene.diagnostics.is_none() {
        // With a panel at the right, the own wall should stay visible.
        place.left = (frame.width() - place.width) / 2;
    }
    let ghost = scene.confirmed.map(|(_, pong)| pong).filter(|_| scene.ghost);
    court::draw(frame, place, pong, ghost, Side::of(scene.own()), palette);
}

fn draw_scores(frame: &mut Frame, scene: &Scene<'_>, pong: &Pong) {
    let (own, side) = (scene.own(), Side::of(scene.own()));
    let mut walls: Vec<Wall> = pong.rules.court().open_walls().collect();
    walls.sort_by_key(|wall| side.place(*wall).index());
    let entry = |wall: Wall| {
        let (name, score) = (shortened(scene.who(pong, wall), NAME_WIDTH), pong.paddle(wall).score);
        // The own score is marked by more than a colour.
        let (open, close) = if own == Some(wall) { ("[", "]") } else { ("", "") };
        (wall, format!("{open}{} {name} {score}{close}", arrow(side.place(wall))))
    };
    let entries: Vec<(Wall, String)> = walls.into_iter().map(entry).collect();
    let total: usize = entries.iter().map(|(_, entry)| width(entry) + 2).sum();
    let mut at = frame.width().saturating_sub(total - 2) / 2;
    for (wall, entry) in entries {
        at = frame.write(at, 0, &entry, Ink::Of(wall)) + 2;
    }
}

fn draw_status(frame: &mut Frame, scene: &Scene<'_>) {
    let row = frame.height() - 2;
    let doing = match scene.status {
        Status::Connecting => "calling",
        Status::Joining => "joining",
        Status::Waiting => "waiting for others",
        Status::CatchingUp => "catching up",
        Status::Stalled { .. } => "waiting for the relay",
        Status::Lost { .. } => "calling again",
        Status::Refused(_) => "refused",
        Status::Left => "left",
        Status::Watching => "watching",
        Status::Playing => "",
    };
    let mut words = vec![shortened(scene.session, 14)];
    words.extend((!doing.is_empty()).then(|| doing.to_owned()));
    if let (Some((shown, _)), Some((confirmed, _))) = (scene.shown, scene.confirmed) {
        words.push(format!("tick {}", confirmed.0));
        words.extend(scene.rtt_us.map(|rtt_us| format!("rtt {}.{} ms", rtt_us / 1_000, rtt_us / 100 % 10)));
        if scene.seat.is_some() {
            words.push(format!("{} ahead", shown.ticks_since(confirmed)));
            words.push(format!("{} omitted", scene.omissions));
        }
    }
    let (words, ink) = scene.note.map_or((words.join(" · "), Ink::Faint), |note| (note.into(), Ink::Text));
    frame.write(1, row, &shortened(&words, frame.width() - 2), ink);
}

fn draw_keys(frame: &mut Frame, scene: &Scene<'_>) {
    let own = scene.own();
    let sideways = own.is_some_and(goes_sideways);
    let arrows = if sideways { "←→" } else { "↑↓" };
    let moves = match (own, scene.tells_releases) {
        (None, _) => String::new(),
        (Some(_), true) => format!("{arrows} move · space serve · "),
        (Some(_), false) => format!("tap or hold {arrows} · space serve · "),
    };
    let panel = if sideways { 'i' } else { 'd' };
    let keys = format!("{moves}{panel} figures · k keep · q quit");
    frame.write(1, frame.height() - 1, &keys, Ink::Faint);
}

fn draw_panel(frame: &mut Frame, diagnostics: &Diagnostics) {
    let width = PANEL_WIDTH.min(frame.width() - 4);
    let (left, top) = (frame.width() - width - 1, 2);
    let inner = width - 4;
    let mut verdict = wrapped(diagnostics.verdict(), inner);
    // The figures stay where they are when the sentence above them changes.
    verdict.resize(verdict.len().max(VERDICT_LINES), String::new());
    let readings = diagnostics.readings();
    let height = (verdict.len() + readings.len() + 3).min(frame.height() - 4);
    frame.clear(left, top, width, height);
    let line = |left: char, right: char| format!("{left}{}{right}", "─".repeat(width - 2));
    frame.write(left, top, &line('┌', '┐'), Ink::Faint);
    frame.write(left + 2, top, " the last second ", Ink::Faint);
    for row in top + 1..top + height - 1 {
        frame.write(left, row, "│", Ink::Faint);
        frame.write(left + width - 1, row, "│", Ink::Faint);
    }
    frame.write(left, top + height - 1, &line('└', '┘'), Ink::Faint);
    let is_bad = readings.iter().any(|reading| reading.level == Level::Concerning);
    let verdict = verdict.iter().map(|line| (line.clone(), if is_bad { Ink::Alarm } else { Ink::Text }));
    let readings = readings.iter().map(|reading| {
        let is_normal = reading.level == Level::Normal;
        let (mark, ink) = if is_normal { (' ', Ink::Faint) } else { ('!', Ink::Alarm) };
        (format!("{mark} {:<16} {}", reading.metric.name(), reading.value), ink)
    });
    let blank = (String::new(), Ink::Text);
    for (row, (text, ink)) in (top + 1..top + height - 1).zip(verdict.chain([blank]).chain(readings)) {
        frame.write(left + 2, row, &shortened(&text, inner), ink);
    }
}
