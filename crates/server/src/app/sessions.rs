//! Passes outcomes of games to the sessions of a host, and the sessions' orders to their games.

use sametick_session::settings::Mode;
use sametick_sim::Time;
use sametick_transport::hub::Links;

use super::{OutputSink, ServerApp, Side};
use crate::hosting::{GAME_OVER, HostSide, Order};
use crate::rooms::Input;
use crate::spectator::Told;

impl ServerApp {
    /// Passes outcomes to sessions and orders to games. Returns whether games may have new outputs.
    pub(super) fn run_sessions(&mut self, now: Time, links: &mut Links, sessions: &mut HostSide) -> bool {
        while let Some(told) = self.relay.poll_told().or_else(|| self.told.pop_front()) {
            match told {
                Told::Ended(key, outcome) => {
                    let results = serde_json::to_string(&outcome).unwrap_or_default();
                    sessions.game_ended(now, &key, results);
                }
                Told::Crashed(key) => sessions.game_crashed(now, links, &key),
            }
        }
        while let Some(key) = self.recorder.poll_ended() {
            sessions.written(now, &key);
        }
        sessions.drain(now, links);
        let mut any = false;
        while let Some(order) = sessions.poll_order() {
            any = true;
            self.carry_out(now, links, sessions, order);
        }
        any
    }

    fn carry_out(&mut self, now: Time, links: &mut Links, sessions: &mut HostSide, order: Order) {
        match order {
            Order::Kick(member, why) => match (self.side_of(member), &mut self.rooms) {
                (Some(Side::Rooms), Some(rooms)) => rooms.handle(now, Input::Kick(member, why)),
                (Some(Side::Relay), _) => self.relay.kick(now, member, why),
                _ => {
                    let (keys, recorder, told) = (&self.keys, &mut self.recorder, &mut self.told);
                    let mut sink = OutputSink { links, keys, recorder, told };
                    sink.close(member, why);
                }
            },
            Order::End(Mode::Lockstep, key) => {
                let is_there = self.relay.relay().find(&key).is_some();
                self.relay.end(now, key.clone(), GAME_OVER);
                if !is_there {
                    sessions.no_game(now, &key);
                }
            }
            Order::End(Mode::Room, key) => {
                let Some(rooms) = &mut self.rooms else { return };
                let is_there = rooms.find(&key).is_some();
                rooms.end(now, &key, GAME_OVER);
                if !is_there {
                    sessions.no_game(now, &key);
                }
            }
        }
    }
}
