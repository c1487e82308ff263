//! Turns key presses and releases into the player's input for a tick.
//!
//! Few terminals report key releases. On those that do, a paddle moves for exactly as long as its key is held. On the
//! others a press moves it a little, and the repeats of a held key keep it moving, as with a text cursor.

use sametick_pong::{Input, Motion, Wall};
use sametick_sim::Time;

/// How long one press moves a paddle if releases are not reported: some half a paddle's length, and longer than the
/// time between two repeats of a held key.
pub const NUDGE_US: u64 = 120_000;

/// How long a press of the space bar counts: several ticks, because one may be omitted, and less than any phase lasts.
const BUTTON_US: u64 = 100_000;

/// A key with a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    Up,
    Down,
    Left,
    Right,
    /// Moves right for players who move sideways; for the others it toggles the panel.
    D,
    Space,
    Panel,
    Ghost,
    Keep,
    Quit,
}

/// What happened to a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stroke {
    /// The key went down, or a terminal that cannot tell the difference repeats it.
    Press,
    /// The key is still down.
    Repeat,
    /// The key was released.
    Release,
}

/// A command to the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    /// End the program.
    Quit,
    /// Show or hide the figures.
    TogglePanel,
    /// Show or hide the confirmed state.
    ToggleGhost,
    /// Keep a copy of the session.
    Keep,
}

/// Which keys are down.
#[derive(Clone, Debug, Default)]
pub struct Keyboard {
    tells_releases: bool,
    /// When up, down, left and right were last pressed, as far as they count as down.
    down: [Option<Time>; 4],
    space_at: Option<Time>,
}

impl Keyboard {
    /// A keyboard with no key down.
    pub fn new(tells_releases: bool) -> Keyboard {
        Keyboard { tells_releases, ..Keyboard::default() }
    }

    /// Whether the terminal reports releases.
    pub fn tells_releases(&self) -> bool {
        self.tells_releases
    }

    /// Handles a key of the player who defends this wall.
    pub fn handle(&mut self, now: Time, key: Key, stroke: Stroke, wall: Option<Wall>) -> Option<Wish> {
        let direction = match key {
            Key::Up => 0,
            Key::Down => 1,
            Key::Left => 2,
            Key::Right => 3,
            Key::D if wall.is_some_and(goes_sideways) => 3,
            Key::Space => {
                if stroke == Stroke::Press {
                    self.space_at = Some(now);
                }
                return None;
            }
            Key::D | Key::Panel => return (stroke == Stroke::Press).then_some(Wish::TogglePanel),
            Key::Ghost => return (stroke == Stroke::Press).then_some(Wish::ToggleGhost),
            Key::Keep => return (stroke == Stroke::Press).then_some(Wish::Keep),
            Key::Quit => return (stroke == Stroke::Press).then_some(Wish::Quit),
        };
        match stroke {
            // If releases are reported, releasing a second key resumes the first.
            Stroke::Press if !self.tells_releases => self.down = [None; 4],
            Stroke::Press => {}
            // A key that was pressed while another window had the keyboard is known only by its repeats.
            Stroke::Repeat if self.down[direction].is_some() => return None,
            Stroke::Repeat => {}
            Stroke::Release => {
                self.down[direction] = None;
                return None;
            }
        }
        self.down[direction] = Some(now);
        None
    }

    /// Releases every key, because another window has the keyboard now.
    pub fn let_go(&mut self) {
        self.down = [None; 4];
    }

    /// The current input of the player at a wall. Space serves, or asks for a rematch if the game is over.
    pub fn input(&self, now: Time, wall: Wall, is_over: bool) -> Input {
        let input = Input::moving(self.motion(now, wall));
        let pressed = self.space_at.is_some_and(|at| now.micros_since(at) < BUTTON_US);
        match (pressed, is_over) {
            (false, _) => input,
            (true, false) => input.and_serve(),
            (true, true) => input.and_rematch(),
        }
    }

    fn motion(&self, now: Time, wall: Wall) -> Motion {
        let counts = |at: &Time| self.tells_releases || now.micros_since(*at) < NUDGE_US;
        let [up, down, left, right] = self.down.map(|at| at.filter(counts));
        let (less, more) = if goes_sideways(wall) { (left, right) } else { (up, down) };
        // The direction that was pressed last wins; `None` sorts before every time.
        match less.cmp(&more) {
            std::cmp::Ordering::Greater => Motion::Less,
            std::cmp::Ordering::Less => Motion::More,
            std::cmp::Ordering::Equal => Motion::Still,
        }
    }
}

/// Whether the paddle of a wall moves left and right.
pub fn goes_sideways(wall: Wall) -> bool {
    matches!(wall, Wall::Top | Wall::Bottom)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Time {
        Time::from_micros(ms * 1_000)
    }

    fn motion(keyboard: &Keyboard, ms: u64) -> Motion {
        keyboard.input(at(ms), Wall::Left, false).motion()
    }

    #[test]
    fn with_releases_a_paddle_moves_while_its_key_is_down() {
        let mut keyboard = Keyboard::new(true);
        let mut on =
            |ms, key, stroke| assert_eq!(keyboard.handle(at(ms), key, stroke, Some(Wall::Left)), None);
        on(0, Key::Up, Stroke::Press);
        on(500, Key::Up, Stroke::Repeat);
        on(700, Key::Down, Stroke::Press);
        let both = keyboard.clone();
        assert_eq!((motion(&both, 690), motion(&both, 5_000)), (Motion::More, Motion::More));
        keyboard.handle(at(800), Key::Down, Stroke::Release, Some(Wall::Left));
        assert_eq!(motion(&keyboard, 900), Motion::Less, "the first key is still down");
        keyboard.handle(at(900), Key::Up, Stroke::Release, Some(Wall::Left));
        assert_eq!(motion(&keyboard, 900), Motion::Still);
        let mut left = both;
        left.let_go();
        assert_eq!(
            motion(&left, 800),
            Motion::Still,
            "nobody tells us of keys while another window has them"
        );
    }

    #[test]
    fn without_releases_a_tap_is_a_nudge_and_repeats_go_on() {
        let mut keyboard = Keyboard::new(false);
        keyboard.handle(at(0), Key::Up, Stroke::Press, Some(Wall::Left));
        assert_eq!(
            [0, 119, 120].map(|ms| motion(&keyboard, ms)),
            [Motion::Less, Motion::Less, Motion::Still]
        );
        for ms in (500..1_000).step_by(40) {
            keyboard.handle(at(ms), Key::Up, Stroke::Press, Some(Wall::Left));
            assert_eq!(motion(&keyboard, ms + 39), Motion::Less);
        }
        keyboard.handle(at(1_000), Key::Down, Stroke::Press, Some(Wall::Left));
        assert_eq!(
            [1_000, 1_119, 1_120].map(|ms| motion(&keyboard, ms)),
            [Motion::More, Motion::More, Motion::Still]
        );
        keyboard.handle(at(1_200), Key::Down, Stroke::Press, Some(Wall::Left));
        keyboard.handle(at(1_210), Key::Left, Stroke::Press, Some(Wall::Left));
        assert_eq!(motion(&keyboard, 1_211), Motion::Still, "a key that leads nowhere stops");
    }

    #[test]
    fn space_serves_or_asks_for_a_rematch_for_several_ticks() {
        let mut keyboard = Keyboard::new(false);
        keyboard.handle(at(0), Key::Space, Stroke::Press, Some(Wall::Left));
        let serve = keyboard.input(at(99), Wall::Left, false);
        assert!(serve.serves() && !serve.wants_rematch());
        let rematch = keyboard.input(at(99), Wall::Left, true);
        assert!(!rematch.serves() && rematch.wants_rematch());
        assert_eq!(keyboard.input(at(100), Wall::Left, true), Input::NONE);
    }

    #[test]
    fn d_moves_sideways_players_and_opens_the_panel_for_others() {
        let mut keyboard = Keyboard::new(true);
        for wall in [None, Some(Wall::Left), Some(Wall::Right)] {
            assert_eq!(keyboard.handle(at(0), Key::D, Stroke::Press, wall), Some(Wish::TogglePanel));
            assert_eq!(keyboard.handle(at(0), Key::D, Stroke::Repeat, wall), None);
        }
        for wall in [Wall::Top, Wall::Bottom] {
            assert_eq!(keyboard.handle(at(1), Key::D, Stroke::Press, Some(wall)), None);
            assert_eq!(keyboard.input(at(1), wall, false).motion(), Motion::More);
            assert_eq!(
                keyboard.handle(at(1), Key::Panel, Stroke::Press, Some(wall)),
                Some(Wish::TogglePanel)
            );
        }
    }
}
