//! Rewind of a peer to the tick from which its session was resumed (L12), and the ticks that it gives to the relay.

use alloc::vec::Vec;

use sametick_sim::record::decode_inputs;
use sametick_sim::{Game, Inputs, Seat, Tick, from_canonical};

use super::{Play, last_inputs};
use crate::history::Excerpt;
use crate::planted::{self, Bug};
use crate::rows::row_as_bytes;

impl<G: Game> Play<G> {
    /// The last closed ticks from this one on, as far as they are kept.
    pub fn given(&self, mut from: Tick) -> impl Iterator<Item = Excerpt> {
        core::iter::from_fn(move || {
            let excerpt = self.past.excerpt(from)?;
            from = excerpt.last().next();
            Some(excerpt)
        })
    }

    /// Rewinds to the state after a tick. Returns whether that state is kept, or can be made from a kept one.
    pub fn go_back(&mut self, to: Tick) -> bool {
        let Some((kept, state)) = self.recent.state_before(to) else { return false };
        let Some(table) = self.past.table_after(to).filter(|_| self.past.first() <= kept.next()) else {
            return false;
        };
        let (mut state, mut inputs) = (state.clone(), Inputs::new());
        for excerpt in self.given(kept.next()).take_while(|excerpt| excerpt.first <= to) {
            let read = excerpt.read_to(to, |_, rows| {
                decode_inputs(rows.iter().map(row_as_bytes), &mut inputs);
                state.step(&inputs);
            });
            if read.is_err() {
                return false;
            }
        }
        self.last = last_inputs::<G>(&table);
        let table = if planted::has(Bug::TableAhead) { self.table.clone() } else { table };
        (self.table, self.confirmed, self.confirmed_tick) = (table, state, to);
        self.recent.rewind(to);
        if kept != to {
            self.recent.push(to, &self.confirmed);
        }
        (self.wanted, self.offered, self.shown_to_relay) = (None, None, None);
        self.past.rewind(to)
    }

    /// Own inputs of the ticks after this one that may have to be sent again, up to the one on screen.
    pub fn own_after(&self, after: Tick) -> Vec<Option<G::Input>> {
        let mut own = Vec::new();
        let Some(seat) = self.seat else { return own };
        for excerpt in self.given(after.next()) {
            // The kept ticks are valid.
            let _ = excerpt.read(|_, rows| {
                let input = rows.get(seat).and_then(|row| row.input.as_ref());
                own.push(input.and_then(|input| from_canonical(input.as_bytes()).ok()));
            });
        }
        own.extend(self.own.iter().cloned());
        own
    }

    /// Whether the player has this seat.
    pub fn is_on(&self, seat: Option<Seat>) -> bool {
        self.seat.is_some() && self.seat == seat
    }
}
