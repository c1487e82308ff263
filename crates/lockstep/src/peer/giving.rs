//! Save messages on a peer: gives the relay a confirmed state in pieces, and closed ticks that the relay lost.

use alloc::vec::Vec;

use sametick_sim::{Game, Tick};
use sametick_wire::{Channel, Malformed};

use crate::history::Excerpt;
use crate::message::{MAX_STATE, PIECE_BYTES, Piece, ToPeer, ToRelay};
use crate::peer::Peer;
use crate::play::Play;

/// The most bytes of a save given at once, whatever is asked for.
pub(super) const MAX_PIECE: usize = 4 * PIECE_BYTES;

impl<G: Game> Peer<G> {
    /// Handles a message about saves: the relay's own, or one that it asks for.
    pub(super) fn on_save_message(&mut self, message: ToPeer) -> Result<(), Malformed> {
        match message {
            ToPeer::Load(head) => {
                let closed = self.confirmed().map_or(head.tick, |(tick, _)| tick.max(head.tick));
                return self.begin_loading(self.seat(), closed, head);
            }
            ToPeer::Piece(piece) => return self.on_piece(&piece),
            ToPeer::GiveSave { tick } => self.on_give_save(tick),
            ToPeer::GivePiece { tick, offset, bytes } => self.on_give_piece(tick, offset, bytes),
            _ => {}
        }
        Ok(())
    }

    /// Gives the relay the closed ticks that it lost, from this one on.
    pub(super) fn on_give_ticks(&mut self, from: Tick) {
        let given: Vec<Excerpt> = self.play.iter().flat_map(|play| play.given(from)).collect();
        if given.is_empty() {
            let (table, bytes) = (Vec::new(), Vec::new());
            self.tell(Channel::Chunks, &ToRelay::Ticks { first: from, ticks: 0, table, bytes });
        }
        for Excerpt { first, ticks, start, bytes } in given {
            let table = start.to_bytes();
            self.tell(Channel::Chunks, &ToRelay::Ticks { first, ticks, table, bytes });
        }
    }

    /// The relay asks for the state after a tick.
    fn on_give_save(&mut self, tick: Tick) {
        match &mut self.play {
            Some(play) => play.offer(tick),
            None => self.tell(Channel::Control, &ToRelay::Offer { tick, bytes: None }),
        }
        self.tell_offer(tick);
    }

    /// The relay asks for a part of the state.
    fn on_give_piece(&mut self, tick: Tick, offset: u32, bytes: u32) {
        let most = (bytes as usize).min(MAX_PIECE);
        match self.play.as_mut().and_then(|play| play.piece(tick, offset as usize, most)) {
            Some(bytes) => self.tell(Channel::Chunks, &ToRelay::Piece(Piece { tick, offset, bytes })),
            None => self.tell(Channel::Control, &ToRelay::Offer { tick, bytes: None }),
        }
    }

    /// Sends the size of the state that the relay asked for, if it is known now.
    pub(super) fn tell_offer(&mut self, asked: Tick) {
        if let Some(offer) = self.play.as_mut().and_then(Play::take_offer) {
            let offer = offer.filter(|(_, bytes)| *bytes <= MAX_STATE);
            let (tick, bytes) = offer.map_or((asked, None), |(tick, bytes)| (tick, Some(bytes as u32)));
            self.tell(Channel::Control, &ToRelay::Offer { tick, bytes });
        }
    }
}
