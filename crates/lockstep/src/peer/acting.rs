//! A peer's inputs, and its periodic duties.

use alloc::vec::Vec;

use sametick_sim::{Game, Tick};
use sametick_wire::Channel;
use sametick_wire::pacer::{MAX_BATCH, PACE_EVERY};

use crate::message::put_inputs;
use crate::peer::{MAX_PREDICTED, Peer};
use crate::rows::Opaque;

impl<G: Game> Peer<G> {
    pub(super) fn note_confirmed(&mut self, confirmed: Tick, had_own: bool) {
        let ticks = confirmed.ticks_since(self.noted.min(confirmed));
        if ticks > 0 {
            self.meter.on_confirmed(self.now, confirmed, ticks, had_own);
            if self.seat().is_none() {
                (self.noted.0 + 1..=confirmed.0).for_each(|tick| self.do_duties(Tick(tick)));
            }
        }
        self.noted = confirmed;
    }

    /// Does what is due every so many ticks.
    pub(super) fn do_duties(&mut self, tick: Tick) {
        self.want_path |= tick.0.is_multiple_of(PACE_EVERY);
        if tick.0.is_multiple_of(G::RATE.per_second()) {
            let diagnostics = self.meter.close(self.stats);
            self.tell(Channel::Diagnostics, &diagnostics);
        }
    }

    pub(super) fn on_local(&mut self, input: G::Input) {
        let Some(play) = self.play.as_mut().filter(|play| play.seat().is_some()) else { return };
        let (tick, opaque) = (play.shown().0.next(), Opaque::of(&input));
        play.predict(Some(input));
        self.pacer.advance(tick);
        let batch = self.pacer.batch() as usize;
        self.hand_in(tick, opaque, batch);
        self.do_duties(tick);
    }

    /// Queues an input, and sends the queue when it holds `batch` inputs.
    fn hand_in(&mut self, tick: Tick, opaque: Opaque, batch: usize) {
        self.meter.on_sent(self.now, tick);
        // The inputs of one message are consecutive.
        if tick != self.unsent.0 + self.unsent.1 as u32 {
            self.send_inputs();
            self.unsent.0 = tick;
        }
        let (_, count, inputs) = &mut self.unsent;
        inputs[*count] = opaque;
        *count += 1;
        if *count >= batch {
            self.send_inputs();
        }
    }

    /// Applies and sends own inputs of the ticks after the confirmed one again, because the relay lost them.
    pub(super) fn hand_in_again(&mut self, own: Vec<Option<G::Input>>) {
        for input in own.into_iter().take(MAX_PREDICTED as usize) {
            let Some(play) = &mut self.play else { return };
            let (tick, opaque) = (play.shown().0.next(), input.as_ref().map(Opaque::of));
            play.predict(input);
            if let Some(opaque) = opaque {
                self.stats.sent_again += 1;
                self.hand_in(tick, opaque, MAX_BATCH as usize);
            }
        }
        self.send_inputs();
    }

    pub(super) fn send_inputs(&mut self) {
        let (first, count, inputs) = self.unsent;
        if count > 0 {
            self.outbox.push(Channel::Input, |out| put_inputs(out, first, inputs[..count].iter()));
            self.unsent.1 = 0;
        }
    }
}
