//! Maps keys, pointer and buttons to inputs of arena.

use sametick_arena::{Action, Input, Kind, Own, Tile, UNIT, Walk, aim_of};

use crate::screen::{Controls, Held};

/// A build preview is sent again after this many ticks: well before it expires.
const SAY_AGAIN: u32 = 5;

/// The state of the controls.
#[derive(Default)]
pub struct Hands {
    /// The build preview, and how many ticks ago it was sent.
    plan: Option<(Tile, Kind)>,
    said_ago: u32,
}

impl Hands {
    /// The build preview.
    pub fn plan(&self) -> Option<(Tile, Kind)> {
        self.plan
    }

    /// The avatar's input for these controls.
    pub fn input(&mut self, own: &Own, controls: &Controls) -> Input {
        let Controls { held, pointer, action, build } = *controls;
        let key = |key: u32| held.has(key);
        let walk = Walk::of_keys(key(Held::UP), key(Held::DOWN), key(Held::LEFT), key(Held::RIGHT));
        let pointed = pointer.map(|at| at.map(|part| (part * UNIT as f32) as i32));
        let aim = match pointed {
            Some([x, y]) => aim_of([x.saturating_sub(own.at[0]), y.saturating_sub(own.at[1])]),
            None if walk.is_still() => own.aim,
            None => aim_of([walk.x() * UNIT, walk.y() * UNIT]),
        };
        let pressed = action || key(Held::ACTION);
        let kind = match build {
            1 => Some(Kind::Wall),
            2 => Some(Kind::Crate),
            _ => None,
        };
        let tile = pointed.and_then(Tile::of).filter(|_| own.is_alive());
        let firm = match (tile, kind) {
            _ if !pressed || own.busy > 0 => None,
            (Some(tile), Some(kind)) => Some(Action::Place(tile, kind)),
            (Some(tile), None) if build == 3 => Some(Action::Remove(tile)),
            _ => None,
        };
        let said = self.say(tile.zip(kind));
        Input { walk, aim, fire: pressed && build == 0, action: firm.or(said), place: 0 }
    }

    /// Sends the build preview if it has changed or is due again.
    fn say(&mut self, plan: Option<(Tile, Kind)>) -> Option<Action> {
        self.said_ago += 1;
        let news = plan != self.plan || self.said_ago >= SAY_AGAIN;
        let had = core::mem::replace(&mut self.plan, plan);
        match plan {
            Some((tile, kind)) if news => {
                self.said_ago = 0;
                Some(Action::Preview(tile, kind))
            }
            None if had.is_some() => Some(Action::Clear),
            _ => None,
        }
    }
}
