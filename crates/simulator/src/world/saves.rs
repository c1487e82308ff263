//! Saves of a world: each must be true, and storing one takes time.

use sametick_lockstep::relay::Input;
use sametick_lockstep::session::{Session, SessionId};
use sametick_sim::{StateHash, Tick, from_canonical};

use super::mischief::Event;
use super::{SECOND_US, World};
use crate::cable::Cable;
use crate::games::Playable;
use crate::outcome::Checker;

/// The longest time to store a save.
const STORING_US: u64 = 20 * SECOND_US;

impl<G: Playable> World<G> {
    /// Checks that a new save of the relay is the state of its tick.
    pub(super) fn on_save(&mut self, id: SessionId) {
        let Some(save) = self.relay.session(id).and_then(Session::save) else { return };
        let (tick, hash, said) = (save.tick, StateHash::of_bytes(&save.state), save.hash);
        let state: Result<G, _> = from_canonical(&save.state);
        self.note(|| format!("there is a save after tick {tick}"));
        if hash != said {
            self.fail(Checker::States, format!("the save after tick {tick} has hash {hash}, it says {said}"));
        }
        let found = match (state, self.referee(id)) {
            (Err(error), _) => Some(format!("the save after tick {tick} cannot be read: {error}")),
            (Ok(_), None) => Some(format!("there is a save after tick {tick} of a session that never was")),
            (Ok(state), Some(referee)) => (referee.digest(tick) != Some(state.digest()))
                .then(|| referee.disagreement("the save", tick, &state)),
        };
        found.into_iter().for_each(|what| self.fail(Checker::States, what));
        self.figures.saves += 1;
        if self.plan.has_store {
            if let Some(save) = self.relay.session(id).and_then(Session::save).cloned()
                && let Some(referee) = self.referee(id)
            {
                referee.saves.1.push(save);
            }
            let wait_us = self.rng.below(STORING_US);
            self.plan_in(wait_us, Event::Stored(id, tick));
        }
    }

    pub(super) fn on_stored(&mut self, id: SessionId, tick: Tick) {
        // A save is stored when the log is durable up to it: the log must not end before it.
        let durable = self.referee(id).map_or(tick, |referee| referee.journal.durable_tick());
        if self.relay_stalled || durable < tick && !self.relay_down {
            return self.plan_in(SECOND_US, Event::Stored(id, tick));
        }
        let Some(referee) = self.referee(id) else { return };
        // Saves in progress when the relay was killed are not stored.
        let Some(at) = referee.saves.1.iter().position(|save| save.tick == tick) else { return };
        let save = referee.saves.1.swap_remove(at);
        if referee.saves.0.as_ref().is_none_or(|before| before.tick < tick) {
            referee.saves.0 = Some(save);
        }
        self.relay.handle(self.now, Input::Saved(id, tick));
        self.relay_told = true;
    }

    /// Whether the relay trusts the client of a cable in a desync.
    pub(super) fn has_say(&self, cable: &Cable) -> bool {
        let session = cable.session.and_then(|id| self.relay.session(id));
        session.is_some_and(|it| it.participants().any(|it| it.member == cable.member && it.has_say))
    }
}
