//! Gathers the inputs of a tick from all seats, in the order in which they were made (B10), for the step and the log.

use sametick_sim::replica::Hosted;
use sametick_sim::{Row, Seat, Tick, canon};

use super::{Host, row_of};

/// An input of a tick, and the key that decides its order among the others (B10).
pub(super) struct Arrived<I> {
    made_us: i64,
    meant: Tick,
    seat: Seat,
    input: I,
}

impl<G: Hosted> Host<G> {
    /// Gathers the inputs of a tick from all seats and sorts them.
    pub(super) fn gather(&mut self, tick: Tick) {
        self.inputs.clear();
        self.gather_brought();
        self.arrived.clear();
        for (seat, seat_slot) in (0..).map(Seat).zip(&mut self.seat_slots) {
            let Some(seat_slot) = seat_slot else { continue };
            self.inputs.omit(seat);
            if seat_slot.joined {
                self.inputs.join(seat);
            }
            if seat_slot.leaving.is_some() {
                self.inputs.leave(seat);
            }
            if let Some((meant, input)) = seat_slot.take::<G>(tick) {
                let clock = self.who.get(&seat_slot.member).map(|who| who.clock).unwrap_or_default();
                let made_us = clock.made_us(self.now, G::RATE, meant);
                self.arrived.push(Arrived { made_us, meant, seat, input });
            }
        }
        self.arrived.sort_unstable_by_key(|arrived| (arrived.made_us, arrived.meant, arrived.seat));
        for (place, mut arrived) in (0..).zip(self.arrived.drain(..)) {
            G::order(&mut arrived.input, place);
            self.inputs.set(arrived.seat, arrived.input);
        }
    }

    pub(super) fn write_rows(&mut self, tick: Tick) {
        let rows = &mut self.rows[row_of(tick)];
        rows.clear(tick);
        self.inputs.brought().for_each(|brought| rows.bring(brought.owner, brought.bytes));
        for row in &self.inputs {
            self.bytes.clear();
            let input = row.input.as_ref().map(|input| {
                canon::encode(input, &mut self.bytes).expect("an input that was read can be written");
                &self.bytes[..]
            });
            rows.push(Row { seat: row.seat, joined: row.joined, left: row.left, input });
        }
    }
}
