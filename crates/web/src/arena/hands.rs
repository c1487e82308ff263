//! What keys, pointers and buttons mean in arena.

use sametick_arena::{Action, Input, Kind, Own, Tile, UNIT, Walk, aim_of};

use crate::screen::{Controls, Held};

/// What might be built is said again after so many ticks: well before it would not be seen any more.
const SAY_AGAIN: u32 = 5;

/// What the hands are about to do.
#[derive(Default)]
pub struct Hands {
    /// What might be built, and how many ticks ago that was said.
    plan: Option<(Tile, Kind)>,
    said_ago: u32,
}

impl Hands {
    /// What might be built.
    pub fn plan(&self) -> Option<(Tile, Kind)> {
        self.plan
    }

    /// What the controls mean for an avatar.
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

    /// Says what might be built if that is news.
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
