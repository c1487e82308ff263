//! Sends the events of a tick, and updates to the views whose turn it is.

use sametick_sim::replica::{Audience, Entity, Hosted, Promise, Told, ViewId};
use sametick_sim::{Tick, TickRate};
use sametick_sim::{canon, maths};
use sametick_wire::channel::MAX_NEWEST_MESSAGE;
use sametick_wire::pacer::PACE_EVERY;
use sametick_wire::{Channel, control};

use super::choice::Surroundings;
use super::{Host, Output};
use crate::message::{MAX_EVENT, ToView, put_pace, put_update};

/// Bytes of a message besides the coded delta of an update: its headers.
const HEADS: usize = 20;

/// The smallest budget: an update without changes always fits, with a bit for each kind of entity.
const MIN_BUDGET: usize = 32;

impl<G: Hosted> Host<G> {
    /// Sends the events of the last step.
    pub(super) fn tell_events(&mut self) {
        self.events.clear();
        self.state.events(&mut self.events);
        self.ears.clear();
        if self.events.iter().next().is_some() {
            self.ears.extend(self.crews.keys().map(|id| (*id, self.state.eye(id.0))));
        }
        for told in self.events.iter() {
            self.bytes.clear();
            let written = canon::encode(&told.event, &mut self.bytes);
            if written.is_err() || self.bytes.len() > MAX_EVENT {
                continue;
            }
            let mut reliable = false;
            for (id, eye) in &self.ears {
                if !hears(id.0, *eye, told) {
                    continue;
                }
                let Some(crew) = self.crews.get_mut(id) else { continue };
                match told.promise {
                    Promise::Lossy => crew.tell(self.tick, |out| out.extend_from_slice(&self.bytes)),
                    Promise::Reliable => {
                        if !reliable {
                            let event = ToView::Event { tick: self.tick, bytes: self.bytes.clone() };
                            self.outbox.write(|out| control::put(out, &event));
                            reliable = true;
                        }
                        for member in crew.members() {
                            self.outbox.push_again(Output::Send(member, Channel::Control));
                        }
                    }
                }
            }
        }
    }

    /// Sends an update to every view whose turn it is. Turns are spread over the ticks.
    pub(super) fn tell_views(&mut self) {
        let tick = self.tick;
        self.tellings = self.tellings.next();
        let turn = self.tellings;
        if !self.crews.keys().any(|(view, _)| is_turn::<G>(*view, turn)) {
            return;
        }
        self.scenery.look(tick, &self.state);
        for (kind, grid) in self.grids.iter_mut().enumerate() {
            grid.fill(self.scenery.table(kind), self.cadences[kind].reach);
        }
        for crew in self.crews.values_mut().filter(|crew| is_turn::<G>(crew.view, turn)) {
            let own = self.state.own(crew.view);
            if let Some(own) = &own {
                own.put(&mut self.own);
            }
            let around = Surroundings {
                layout: &self.layout,
                scenery: &self.scenery,
                grids: &self.grids,
                cadences: &self.cadences,
                tick,
                eye: self.state.eye(crew.view),
                own: own.is_some().then_some(&self.own[..]),
                budget: self.config.budget_bytes.clamp(MIN_BUDGET, MAX_NEWEST_MESSAGE - HEADS),
            };
            let head = crew.compose(&around, &mut self.delta, &mut self.lossy);
            self.bytes.clear();
            put_update(&mut self.bytes, &head, &self.delta, &self.lossy);
            self.stats.updates += 1;
            self.stats.update_bytes += self.bytes.len() as u64;
            for member in crew.members() {
                let Some(who) = self.who.get_mut(&member) else { continue };
                let seat_slot = who.seat.and_then(|seat| self.seat_slots[seat.index()].as_mut());
                let pace = seat_slot.filter(|_| tick.ticks_since(who.paced) >= PACE_EVERY).map(|seat_slot| {
                    who.paced = tick;
                    seat_slot.pace()
                });
                self.stats.sent += 1;
                self.outbox.push(Output::Send(member, Channel::State), |out| {
                    put_pace(out, pace.as_ref());
                    out.extend_from_slice(&self.bytes);
                });
            }
        }
    }
}

/// Whether it is a view's turn. Updates come at the game's update rate, whatever the tick rate.
fn is_turn<G: Hosted>(view: ViewId, tick: Tick) -> bool {
    is_turn_at(G::RATE, G::UPDATES, view, tick)
}

fn is_turn_at(rate: TickRate, updates: TickRate, view: ViewId, tick: Tick) -> bool {
    let (steps, updates) = (u64::from(rate.per_second()), u64::from(updates.per_second()));
    let turns = |ticks: u64| ticks * updates / steps;
    let ticks = u64::from(tick.0) + u64::from(view.0);
    turns(ticks + 1) != turns(ticks)
}

fn hears<E>(view: ViewId, eye: Option<[f32; 3]>, told: &Told<E>) -> bool {
    match told.audience {
        Audience::Everyone => true,
        Audience::View(only) => only == view,
        Audience::Near(place, reach) => eye.is_some_and(|eye| {
            let [x, y, z] = [0, 1, 2].map(|axis| place[axis] - eye[axis]);
            maths::sqrt(x * x + y * y + z * z) <= reach
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn update_rate_is_independent_of_tick_rate() {
        for (steps, updates) in [(30, 10), (20, 10), (60, 20), (30, 30), (50, 20), (60, 25)] {
            for view in [0, 1, 2, 7, u16::MAX] {
                let turn = |tick: &u32| {
                    is_turn_at(TickRate::hz(steps), TickRate::hz(updates), ViewId(view), Tick(*tick))
                };
                let second = (1_000..1_000 + u32::from(steps)).filter(turn).count();
                assert_eq!(second, usize::from(updates), "{steps}/{updates}, view {view}");
                let ticks: alloc::vec::Vec<u32> = (1..600).filter(turn).collect();
                let gaps = ticks.windows(2).map(|pair| pair[1] - pair[0]);
                assert!(gaps.max() <= Some(u32::from(steps).div_ceil(updates.into())));
            }
        }
    }
}
